"""Several optimisers, one evaluation for all of them: what an accelerator likes.

Each optimiser runs in a thread of its own and asks for one value at a time; when all that still run have asked, one
batched call answers them.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.optim.lbfgs import Objective, Vector
from revarb.runtime.interrupts import capture_interrupts

T = TypeVar("T")


Batch = Callable[[Float64[np.ndarray, "K V"]], tuple[Float64[np.ndarray, " K"], Float64[np.ndarray, "K V"]]]
"""Many flat vectors to their bounds and gradients."""


def run_batched(
    runs: Sequence[Callable[[Objective], T]], starts: Float64[np.ndarray, "K V"], evaluate: Batch
) -> list[T]:
    """Call every run with an objective that shares its evaluations with the others; Ctrl-C reaches them all.

    A run then gets KeyboardInterrupt from its objective, though never from the first call: there is no best point yet.
    """
    desk = _Desk(starts.copy(), evaluate)
    with ThreadPoolExecutor(len(runs)) as pool, capture_interrupts() as pressed:
        futures = [pool.submit(run, desk.objective(member)) for member, run in enumerate(runs)]
        for member, future in enumerate(futures):
            future.add_done_callback(lambda _, member=member: desk.questions.put(_Question(member, None)))
        desk.answer_all(pressed)
    return [future.result() for future in futures]


class _Question(NamedTuple):
    """A member asks for the value at `vector` or, without one, says that it has finished."""

    member: int
    vector: Vector | None


class _Desk:
    """Takes the members' questions, and answers them all at once. Members that have finished keep their last place."""

    def __init__(self, vectors: np.ndarray, evaluate: Batch):
        self._vectors, self._evaluate = vectors, evaluate
        self.questions: SimpleQueue[_Question] = SimpleQueue()
        self._answers = [SimpleQueue() for _ in vectors]

    def objective(self, member: int) -> Objective:
        """What member `member` maximises: to be called in its own thread."""

        def objective(vector: Vector) -> tuple[float, Vector]:
            self.questions.put(_Question(member, vector))
            answer = self._answers[member].get()
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return objective

    def answer_all(self, pressed: Sequence[int]) -> None:
        """Work until all members have finished."""
        running, asked, begun = set(range(len(self._vectors))), set(), False
        while running:
            member, vector = self.questions.get()
            if vector is None:
                running.discard(member)
            else:
                self._vectors[member] = vector
                asked.add(member)
            if asked and asked == running:
                self._answer(sorted(asked), stop=begun and bool(pressed))
                asked, begun = set(), True

    def _answer(self, asked: Sequence[int], stop: bool) -> None:
        try:
            if stop:
                raise KeyboardInterrupt
            values, gradients = self._evaluate(self._vectors)
        except BaseException as error:  # theirs to raise, or they would wait for ever
            for member in asked:
                self._answers[member].put(error)
            return
        for member in asked:
            self._answers[member].put((float(values[member]), gradients[member]))

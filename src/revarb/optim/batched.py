"""Several optimisers that share batched evaluations, for an accelerator.

Each optimiser runs in its own thread and requests one value at a time; when all running ones have requested a value,
one batched call computes them all.
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
"""A function from K flat vectors to their bounds and gradients."""


def run_batched(
    runs: Sequence[Callable[[Objective], T]], starts: Float64[np.ndarray, "K V"], evaluate: Batch
) -> list[T]:
    """Call every run, in its own thread, with an objective that shares its evaluations with the other runs.

    After Ctrl-C the objectives raise KeyboardInterrupt, but not at the first evaluation: there is no best point before.
    """
    evaluator = _Evaluator(starts.copy(), evaluate)
    with ThreadPoolExecutor(len(runs)) as pool, capture_interrupts() as pressed:
        futures = [pool.submit(run, evaluator.make_objective(member)) for member, run in enumerate(runs)]
        for member, future in enumerate(futures):
            future.add_done_callback(lambda _, member=member: evaluator.requests.put(_Request(member, None)))
        evaluator.serve(pressed)
    return [future.result() for future in futures]


class _Request(NamedTuple):
    """A member's request for the value at `vector`; None if the member has finished."""

    member: int
    vector: Vector | None


class _Evaluator:
    """Collects the members' requests and answers them with one batched call. Finished members keep their last vector.

    The batch always has the same shape, so it compiles once.
    """

    def __init__(self, vectors: np.ndarray, evaluate: Batch):
        self._vectors, self._evaluate = vectors, evaluate
        self.requests: SimpleQueue[_Request] = SimpleQueue()
        self._answers = [SimpleQueue() for _ in vectors]

    def make_objective(self, member: int) -> Objective:
        """Make the objective of one member, to be called in the member's thread."""

        def objective(vector: Vector) -> tuple[float, Vector]:
            self.requests.put(_Request(member, vector))
            answer = self._answers[member].get()
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return objective

    def serve(self, pressed: Sequence[int]) -> None:
        """Answer requests until all members have finished; once an interrupt is in `pressed`, stop them."""
        running, waiting, evaluated = set(range(len(self._vectors))), set(), False
        while running:
            member, vector = self.requests.get()
            if vector is None:
                running.discard(member)
            else:
                self._vectors[member] = vector
                waiting.add(member)
            if waiting and waiting == running:
                self._answer(sorted(waiting), stop=evaluated and bool(pressed))
                waiting, evaluated = set(), True

    def _answer(self, waiting: Sequence[int], stop: bool) -> None:
        try:
            if stop:
                raise KeyboardInterrupt
            values, gradients = self._evaluate(self._vectors)
        except BaseException as error:  # raised in the members' threads, which would otherwise wait forever
            for member in waiting:
                self._answers[member].put(error)
            return
        for member in waiting:
            self._answers[member].put((float(values[member]), gradients[member]))

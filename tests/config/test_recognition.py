import pytest

import revarb
from revarb.config.recognition import Recognition
from revarb.errors import InputError
from support import small


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": ()}, "recognition.hidden must be a list of whole numbers"),
        ({"hidden": (0,)}, "recognition.hidden must be a whole number from 1 to 100000"),
        ({"rounds": []}, "recognition.rounds must be a list"),
        ({"learning_rate": 0.0}, "recognition.learning_rate must be a finite number above 0"),
        ({"variance": "common"}, "recognition.variance must be one of"),
        ({"start": "zero"}, "recognition.start must be one of"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        revarb.RGP.from_dict({"recognition": wrong})


def test_a_configuration_survives_plain_values():
    spec = small.spec(recognition=Recognition(hidden=(7, 3), variance="shared"))
    assert revarb.RGP.from_dict(spec.to_dict()) == spec

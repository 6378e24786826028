"""Grid points and seeds are divided over the devices of a machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import on_devices
import pytest

from orderparam.core.devices import rounded_up


def test_one_device_divides_nothing():
    assert [rounded_up(count) for count in (1, 2, 7)] == [1, 2, 7]


@pytest.mark.long
def test_eight_devices_find_what_one_finds():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, str(Path(on_devices.__file__))],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    divided = json.loads(done.stdout.splitlines()[-1])
    assert divided.pop("devices") == 8
    alone = on_devices.results()
    assert divided.keys() == alone.keys()
    for name, values in alone.items():
        np.testing.assert_allclose(divided[name], values, rtol=1e-9, atol=1e-12, err_msg=name)

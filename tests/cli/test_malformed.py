"""Malformed command lines end in one line and exit status 2: no traceback, no call that does not
end.
"""

import pytest
from malformed import calls, faults

from orderparam.comparison import studies


@pytest.mark.timeout(600)
def test_malformed_calls_end_in_one_line(tmp_path, monkeypatch):
    assert faults(tmp_path, monkeypatch, calls(0, 100, studies())) == []

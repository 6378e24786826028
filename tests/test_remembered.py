"""What `pytest --remember` writes about long tests."""

import unchanged

LEFT_OUT = "solve/test_secant.py::test_left_out"
FAILED = "solve/test_secant.py::test_failed"
PASSED = "solve/test_secant.py::test_passed"


def test_a_long_test_that_was_left_out_keeps_its_line(tmp_path, monkeypatch):
    """Short tests of the same function run, and say nothing about its long ones."""
    monkeypatch.setattr(unchanged, "PASSED", tmp_path / "passed.txt")
    monkeypatch.setattr(unchanged, "state", lambda function: "11111111")
    unchanged.PASSED.write_text(f"00000000 {LEFT_OUT}\n00000000 {FAILED}\n")
    unchanged.remember({LEFT_OUT: True, FAILED: False, PASSED: True}, {FAILED, PASSED})
    assert unchanged.known() == {LEFT_OUT: "00000000", PASSED: "11111111"}

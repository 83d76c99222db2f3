"""Task arguments come from files and from the command line; later ones win."""

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.taskfile import read_args


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", {}),
        ('{"times": 3, "image": "x=y"}', {"times": 3, "image": "x=y"}),
        ("times: 3", {"times": 3}),
        ("times=3", {"times": 3}),
        ("times=3,name=a b,on=true,half=0.5", {"times": 3, "name": "a b", "on": True, "half": 0.5}),
        ("url=http://host:80/?q=1", {"url": "http://host:80/?q=1"}),
        ("name=", {"name": ""}),
        ("pattern=[a-z", {"pattern": "[a-z"}),
    ],
)
def test_arguments_as_text(text, args):
    assert read_args([text]) == args


def test_later_ones_win_and_texts_win_over_files(tmp_path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.json"
    one.write_text("a: 1\nb: 1\nc: 1\nd: 1\n")
    two.write_text('{"b": 2, "c": 2, "d": 2}')

    args = read_args(["c=3,d=3", "d: 4"], [str(one), str(two)])

    assert args == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize("text", ["times", "[1]", "3", "a: 1\na: 2", "a: [", "a b=1"])
def test_texts_that_are_no_arguments(text):
    with pytest.raises(UsageError, match="--task-args"):
        read_args([text])


@pytest.mark.parametrize("content", [b"[1]", b"a: [", b"\xff"])
def test_files_that_are_no_arguments(tmp_path, content):
    path = tmp_path / "args.yaml"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"--task-args-file .*args\.yaml: "):
        read_args(files=[str(path)])


def test_a_file_of_arguments_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"absent\.yaml: No such file"):
        read_args(files=[str(tmp_path / "absent.yaml")])

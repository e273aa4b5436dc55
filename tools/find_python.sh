#!/bin/sh
# Print the path of a Python of the given version, such as 3.13: the one on the path, or else one of pyenv's.
# Fail where there is none that can make a virtual environment.
for python in "python$1" "$(pyenv root 2> /dev/null)"/versions/"$1".*/bin/python; do
    "$python" -c "import ensurepip, sys, venv; print(sys.executable)" 2> /dev/null && exit
done
exit 1

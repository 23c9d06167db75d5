#!/bin/sh
# Make .venv, or bring it up to date: this package as it stands here, with one of its extras. Nothing is installed
# elsewhere. What is missing is said in one line.
#
#     sh scripts/setup.sh EXTRA
set -eu
extra=$1
venv=.venv

fail() {
    echo "setup: $*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() { # a name on the PATH need not run: version managers leave stubs there
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

if ! is_new_enough "$venv/bin/python"; then
    python=$(find_python) || fail "no Python 3.11 or newer was found (PYTHON=/path/to/python names one)"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        fail "$python cannot make a virtual environment (Debian and Ubuntu: apt-get install python3-venv)"
    fi
fi

echo "setup: installing streamfold[$extra] into $venv" >&2
log=$venv/pip.log
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet -e ".[$extra]" >"$log" 2>&1 ||
    fail "the dependencies cannot be installed; is there a network? (what pip says: $log)"

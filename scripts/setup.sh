#!/bin/sh
# Makes this machine ready, as far as it is not. The Makefile calls it before everything; parts are named in the order
# in which they are wanted:
#
#   bench    .venv with the command `gridwise` of this folder, at the versions in constraints.txt: all but charts
#   run      this package (editable) and the whole extra `bench`
#   dev      the same and what tests, style and packaging need (the group `dev` of pyproject.toml)
#   docs     the same and what the site needs (the group `docs`)
#   tools    the same as dev and what fuzzing, mutation tests and audits need (the group `tools`)
#   release  the same as dev and what the check of a release needs (the group `release`)
#   adapter  a GPU adapter that wgpu can use; a software one (Mesa's lavapipe) by apt if there is none
#
# A part that is ready leaves a stamp in .venv, so that the next call takes milliseconds. The variable PYTHON names
# the interpreter that .venv is made from; LOCKED=1 lets pip install nothing whose hash is not in requirements-ci.lock.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
venv_python=$venv/bin/python
# Packages are compiled where they are imported, for all later processes, also in containers that forbid it.
export PYTHONDONTWRITEBYTECODE=

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 1
}

# ---- stamps ----------------------------------------------------------------------------------------------------------

# What a stamp was made under, beside the files it is older than. A venv does not work in another folder, and an
# adapter comes and goes with its Vulkan driver (the same .venv in a fresh container, say).
surroundings() {
    pwd -P
    if [ "$1" = adapter ]; then
        ls /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d 2>/dev/null || true
        printf '%s\n' "${VK_DRIVER_FILES:-}" "${VK_ICD_FILENAMES:-}" "${WGPU_BACKEND_TYPE:-}"
    fi
}

is_ready() {
    [ -x "$venv_python" ] && [ -f "$venv/.ready-$1" ] || return 1
    [ -z "$(find pyproject.toml constraints.txt scripts/setup.sh -newer "$venv/.ready-$1")" ] || return 1
    [ "$(cat "$venv/.ready-$1")" = "$(surroundings "$1")" ]
}

# Whether the packages of a part are there, by its own stamp or by that of a part that includes it.
is_installed() {
    is_ready "$1" && return
    case $1 in
    bench) is_installed run ;;
    run) is_installed dev ;;
    dev) is_ready docs || is_ready tools || is_ready release ;;
    *) return 1 ;;
    esac
}

stamp() { surroundings "$1" >"$venv/.ready-$1"; }

# ---- Debian packages -------------------------------------------------------------------------------------------------

# apt_install PACKAGE WHAT-FOR REMEDY-WITHOUT-APT
apt_install() {
    if ! command -v apt-get >/dev/null 2>&1; then
        fail "$2 is missing, and there is no apt-get to install it with. $3"
    elif [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        fail "$2 is missing, and only root can install it. Run
    sudo apt-get update && sudo apt-get install $1
and call make again. $3"
    fi
    say "$2 is missing: installing the package $1 by apt-get"
    log=$(mktemp)
    # $as_root is a command of two words, or of none
    # shellcheck disable=SC2086
    $as_root apt-get update -qq >"$log" 2>&1 || true # the lists that are there may do
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$1" >>"$log" 2>&1 ||
        { cat "$log" >&2 && fail "apt-get could not install $1 (see above), which is needed for $2. $3"; }
    rm -f "$log"
}

# ---- Python ----------------------------------------------------------------------------------------------------------

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# Prints the interpreter to make .venv from.
choose_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" ||
            fail "PYTHON=$PYTHON is $(python_version "$PYTHON" || echo "not a Python that runs"), but Python 3.11 or newer is needed"
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3.13 python3.12 python3.11 python3; do
        if command -v "$candidate" >/dev/null 2>&1 && is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, but python3 here is $(python_version python3 || echo missing). Install one (Debian 12, Ubuntu 24.04 and later have it: apt-get install python3), or name one: make PYTHON=/path/to/python3.12 …"
}

# .venv made from another version than PYTHON asks for would quietly test the wrong one.
check_version() {
    if [ -n "${PYTHON:-}" ] && [ -x "$venv_python" ]; then
        wanted=$(python_version "$PYTHON") || fail "PYTHON=$PYTHON is not a Python that runs"
        present=$(python_version "$venv_python" || echo "a broken Python")
        [ "$wanted" = "$present" ] ||
            fail "$venv is of Python $present, but PYTHON=$PYTHON is $wanted; remove it (rm -rf $venv) and call make again, or leave out PYTHON="
    fi
}

# make_venv PART. `pip` is then the command of a pip that installs into it.
make_venv() {
    pip="$venv_python -m pip"
    if [ -x "$venv_python" ] && is_new_enough "$venv_python"; then
        python=$venv_python
        if "$venv_python" -m pip --version >/dev/null 2>&1; then return; fi
    else
        # Not by a name that a launcher, such as pyenv's, looks up each time
        python=$("$(choose_python)" -c 'import sys; print(sys.executable)')
    fi
    version=$(python_version "$python")
    # A pip of its own takes as long as the packages of `bench`, and that of the interpreter can install those.
    if [ "$1" = bench ] && "$python" -c 'import pip, sys; sys.exit(int(pip.__version__.split(".")[0]) < 23)' 2>/dev/null; then
        "$python" -m venv --without-pip --clear "$venv"
        pip="$python -m pip --python $venv_python"
        return
    fi
    # Debian and Ubuntu split these two modules off
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "python$version-venv" "the module ensurepip or venv of $python" \
            "Or use a Python that has both: make PYTHON=/path/to/python …"
    fi
    if [ "$python" = "$venv_python" ]; then # made for `bench`
        "$venv_python" -m ensurepip >/dev/null
    else
        "$python" -m venv --clear "$venv"
    fi
}

# pip_install WORD…: what pip says, warnings included, is shown only where it fails.
pip_install() {
    # shellcheck disable=SC2086 # a command of some words
    $pip install -q --no-compile --disable-pip-version-check "$@" >"$venv/pip.log" 2>&1 || { cat "$venv/pip.log" >&2 && return 1; }
}

# What pyproject.toml asks for, but not what draws charts, which takes longer than all others; without a build: the
# folder of this package is on the path, as of an editable install, which later replaces both files.
install_command() {
    "$venv_python" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
names = [*project["dependencies"], *project["optional-dependencies"]["bench"]]
print(*(name for name in names if not name.startswith(("altair", "vl-convert"))), sep="\n")' >"$venv/bench.txt"
    pip_install -c constraints.txt -r "$venv/bench.txt" || return 1
    "$venv_python" -c '
import os, sysconfig
with open(os.path.join(sysconfig.get_path("purelib"), "_editable_impl_gridwise_py.pth"), "w") as file:
    file.write(os.getcwd())'
    # shellcheck disable=SC2016 # for the shell that runs it
    printf '%s\n' '#!/bin/sh' 'exec "${0%/*}/python" -P -m gridwise_py "$@"' >"$venv/bin/gridwise"
    chmod +x "$venv/bin/gridwise"
}

install_packages() {
    say "installing what this needs, at the versions in constraints.txt, into $venv; that takes from 10 s to some minutes"
    make_venv "$1"
    if [ -n "${LOCKED:-}" ]; then
        pip_install --require-hashes -r requirements-ci.lock ||
            fail "pip could not install what requirements-ci.lock names, by its hashes (see above). Unset LOCKED to go without them, or renew the file: make lock"
    fi
    case $1 in
    bench | run) groups= ;;
    dev) groups="--group dev" ;;
    *) groups="--group dev --group $1" ;;
    esac
    # shellcheck disable=SC2086 # some words, or none
    if ! if [ "$1" = bench ]; then
        install_command
    else
        # Groups need pip 25.1, build constraints 25.3
        pip_install -c constraints.txt --upgrade pip &&
            pip_install -c constraints.txt --build-constraint constraints.txt -e ".[bench]" $groups
    fi; then
        fail "pip could not install what is needed (see above). It needs a way to a package index (PyPI, or the one that pip is configured for); call make again when there is one"
    fi
}

# ---- adapter ---------------------------------------------------------------------------------------------------------

# Prints "gpu NAME", "cpu NAME" or "none": the adapter that gridwise_py takes by default. Drivers may chatter on stderr.
find_adapter() {
    "$venv_python" -c '
import gridwise_py
adapters = gridwise_py.list_adapters()
print(("cpu " if adapters[0].type == "CPU" else "gpu ") + str(adapters[0]) if adapters else "none")' 2>"$venv/adapter.log" ||
        { cat "$venv/adapter.log" >&2 && fail "looking for adapters failed (see above)"; }
}

require_adapter() {
    mesa="mesa-vulkan-drivers"
    adapter=$(find_adapter)
    if [ "$adapter" = none ]; then
        if command -v nvidia-smi >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; then
            say "there is an NVIDIA GPU, but its Vulkan driver is not to be seen (in a container: NVIDIA_DRIVER_CAPABILITIES=all)"
        fi
        if dpkg-query -W -f '${Status}' $mesa 2>/dev/null | grep -q '^install ok installed$'; then
            fail "no adapter is found, although $mesa (a software Vulkan) is installed. VK_DRIVER_FILES is '${VK_DRIVER_FILES:-}', VK_ICD_FILENAMES is '${VK_ICD_FILENAMES:-}': unset them, or look at what \`vulkaninfo --summary\` says (package vulkan-tools)"
        fi
        apt_install $mesa "a Vulkan adapter" \
            "For a GPU, install its Vulkan driver; without one, Mesa's software Vulkan (lavapipe; $mesa on Debian, Ubuntu and Fedora, vulkan-swrast on Arch)."
        adapter=$(find_adapter)
        [ "$adapter" != none ] ||
            fail "no adapter is found, although $mesa was just installed; look at what \`vulkaninfo --summary\` says (package vulkan-tools)"
    fi
    case $adapter in
    cpu*)
        say "################################################################################"
        say "#  No GPU here: Vulkan runs in software. ALL TIMES ARE THOSE OF A CPU,         #"
        say "#  and say nothing about any GPU.                                              #"
        say "################################################################################"
        ;;
    esac
    say "adapter: ${adapter#?pu }"
}

# ----------------------------------------------------------------------------------------------------------------------

check_version
for part in "$@"; do
    case $part in
    bench | run | dev | docs | tools | release)
        if ! is_installed "$part"; then
            install_packages "$part"
            stamp "$part"
        fi
        ;;
    adapter)
        if ! is_ready adapter; then
            require_adapter
            stamp adapter
        fi
        ;;
    *) fail "unknown part '$part'; there are bench, run, dev, docs, tools, release and adapter" ;;
    esac
done

#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# torch.sh PYTHON: installs torch beside the packages of PYTHON, once, and prints what PYTHONPATH must be. PYTHON is what test/python313.sh
# prints. Two may run at once: the second waits.
#
# On Linux, PyPI has torch for GPUs alone, with gigabytes of libraries that it loads at its import. It gets stubs of them here, which
# say that there is no GPU: gloo needs none. Exit code 3: it cannot be had; stderr says why.
set -eu
python=$1
impossible() {
	echo "torch: cannot be had here: $*" >&2
	exit 3
}
command -v gcc >/dev/null || impossible "gcc is not installed, which makes stubs of the GPU's libraries"

packages='torch==2.15.0 filelock==4.3.1 sympy==1.14.0 mpmath==1.4.1 networkx==3.7 jinja2==3.1.6 markupsafe==3.0.4 fsspec==2026.9.0 setuptools==84.2.1'
target=$("$python" -c 'import sys; print(sys.prefix + "/torch")')
here=$target # the same folder outside of PYTHON's root
[ -d "${target%/torch}" ] || here=$(dirname "$python")/trixie$target
exec 9>"$here.lock"
flock 9
if [ "$(cat "$here/complete" 2>/dev/null)" != "$packages" ]; then
	echo "torch: install it" >&2
	rm -rf "$here"
	# shellcheck disable=SC2086 # a list
	"$python" -m pip install -qq --disable-pip-version-check --no-deps --only-binary=:all: --target "$target" $packages >&2 ||
		impossible "pip cannot install it"

	lib=$here/torch/lib
	users="$lib/libtorch_cpu.so $lib/libtorch_cuda.so $lib/libtorch_python.so $lib/libc10_cuda.so $lib/libtorch_global_deps.so $lib/libtorch_nvshmem.so"
	stub=$(mktemp -d)
	trap 'rm -rf "$stub"' EXIT
	# shellcheck disable=SC2086
	nm -D --undefined-only $users | sed -n 's/^ *U \([^@]*\).*/\1/p' | grep -E '^(cu|nccl|nvrtc|nvshmem|__cuda)' | sort -u |
		while read -r name; do
			case $name in
			nvshmem_selected_device_transport) echo "long $name[64];" ;;
			*Get*String | *GetErrorName | *GetLastError) echo "const char *$name(void) { return \"no GPU\"; }" ;;
			*) echo "int $name(void) { return 100; }" ;; # cudaErrorNoDevice
			esac
		done >"$stub/stub.c"
	# shellcheck disable=SC2086
	objdump -p $users | sed -n 's/^ *NEEDED *\(lib\(cu\|nccl\|nvrtc\|nvshmem\).*\)/\1/p' | sort -u |
		while read -r name; do
			gcc -shared -fPIC -w -fno-builtin "-Wl,-soname,$name" -o "$lib/$name" "$stub/stub.c"
		done
	PYTHONPATH=$target "$python" -c 'import torch.distributed; assert torch.distributed.is_gloo_available() and not torch.cuda.is_available()' >&2 ||
		impossible "it does not start with stubs of the GPU's libraries"
	echo "$packages" >"$here/complete"
fi
echo "$target"

#!/usr/bin/env bats
# report.bats - the table of GPU resources used by kernels, and its arithmetic.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without python3
    # The output of nvcc for one kernel; a test appends to it.
    cat >kernel.ptx <<'END'
.extern .shared .align 16 .b8 room[];
.visible .entry f(
	.param .u64 f_param_0
)
.maxntid 256, 1, 1
{
	ret;

}
END
    printf '%s\n' "ptxas info : Compiling entry function 'f' for 'sm_80'" \
        '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' \
        'ptxas info : Used 40 registers, used 1 barriers, 128 bytes smem' \
        >told
    cat >nvcc <<'END'
#!/bin/sh
while [ $# -gt 1 ]; do
    [ "$1" != --keep-dir ] || cp kernel.ptx "$2"
    shift
done
cat told
END
    chmod +x nvcc
}

# report OPTION...: for kernel.cu, with the nvcc above.
report() {
    python3 "${abs_top_srcdir:?}/tests/cuda/report.py" --arch=80 \
        --nvcc=./nvcc --cuobjdump= "$@" kernel.cu
}

# refused PATTERN OPTION...: it exits with 1 and a message.
refused() {
    local pattern=$1
    shift
    run -1 report "$@"
    grep -q -- "$pattern" <<<"$output"
}

@test "a kernel has a row with its occupancy" {
    report >table
    grep -qE '^f +80 +40 +128 +0 +256 +0 +0 +6 +75 % +registers$' table
}

@test "spills and local memory are refused" {
    sed 's/0 bytes spill stores/8 bytes spill stores/' told >other
    mv other told
    refused 'f, sm_80: spills'
    sed 's/0 bytes stack/24 bytes stack/; s/8 bytes spill/0 bytes spill/' \
        told >other
    mv other told
    refused 'f, sm_80: local memory'
}

@test "launches are read from a file, and must fit" {
    echo 'f* 128 65536 to 512 # words' >launches
    report --launches=launches >table
    grep -qE '^f to 512 +80 +40 +128 +65536 +128 +0 +0 +2 +12 % +shared$' table
    echo 'f 128 165888' >launches
    report --launches=launches
    echo 'f 128 167000' >launches
    refused 'f, sm_80: does not fit' --launches=launches
    echo 'f 512 0' >launches
    refused 'more threads than its bounds' --launches=launches
    echo 'g 128 0' >launches
    refused 'g: a launch of no kernel' --launches=launches
    echo 'f many' >launches
    refused 'launches: line 1 is not PATTERN' --launches=launches
}

@test "a launch can differ by architecture" {
    printf '%s\n' 'f@80 128 65536' 'f@90 256 65536' >launches
    report --launches=launches >table
    [ "$(wc -l <table)" -eq 2 ]
    grep -qE '^f +80 +40 +128 +65536 +128 ' table
    echo 'f@x 128 0' >launches
    refused 'line 1 is not' --launches=launches
}

@test "unknown launch parameters are left out" {
    sed 's/ret;/mov.u32 %r1, room;/' kernel.ptx >other
    mv other kernel.ptx
    report >table
    grep -qE '^f +80 +40 +128 +[?] +256 +0 +0 +[?] +[?]$' table
    sed '/maxntid/d; s/room;/0;/' kernel.ptx >other
    mv other kernel.ptx
    report >table
    grep -qE '^f +80 +40 +128 +0 +[?] +0 +0 +[?] +[?]$' table
}

@test "a compiler that fails or prints unknown output is an error" {
    refused "./no: No such file" --nvcc=./no
    refused 'report.py: false' --nvcc=false
    sed 's/Used/Takes/' told >other
    mv other told
    refused 'not understood'
    : >told
    refused 'there is no kernel'
}

@test "cuobjdump must agree" {
    local what
    for what in 'REG:40 STACK:0' 'REG:41 STACK:0' 'REG:40 STACK:8'; do
        printf ' Function f:\n  %s SHARED:1152 LOCAL:0 X:0\n' "$what" >dump
        if [ "$what" = 'REG:40 STACK:0' ]; then
            report --cuobjdump='sh -c "cat dump" x'
        else
            refused 'cuobjdump says' --cuobjdump='sh -c "cat dump" x'
        fi
    done
}

@test "the output of nvcc and ptxas is parsed" {
    local nvcc
    nvcc=$(made NVCC)
    [ -x "$nvcc" ] || skip "nvcc was not found"
    cat >kernel.cu <<'END'
extern __shared__ float room[];
template <int N>
static __global__ void __launch_bounds__(96) scaled(float *x)
{
    room[threadIdx.x] = N * x[threadIdx.x];
    x[threadIdx.x] = room[95 - threadIdx.x];
}
extern "C" void go(float *x);
void go(float *x)
{
    scaled<3><<<1, 96, 384>>>(x);
}
END
    echo 'scaled<*> 96 384' >launches
    report --arch=80,90 --nvcc="$nvcc" --launches=launches >table
    grep -qE '^scaled<3> +90 +[0-9]+ +0 +384 +96 +0 +0 +21 +98 % +warps$' table
    # An array indexed at run time is in local memory.
    cat >kernel.cu <<'END'
__global__ void __launch_bounds__(96) local(int *x)
{
    int kept[64];
    for (int i = 0; i < 64; i++)
        kept[x[i] & 63] = i;
    x[threadIdx.x] = kept[x[threadIdx.x] & 63];
}
END
    refused 'local, sm_80: local memory' --nvcc="$nvcc"
    grep -qE '^local +80 +[0-9]+ +0 +0 +96 +0 +256 ' <<<"$output"
}

@test "occupancy, by hand" {
    # 8 warps of 40 registers: 1280 each, 12 to a quarter, 48 / 8 blocks.
    # 168 registers: 5376 a warp, 3 to a quarter, 12 / 8.  129 threads have 5
    # warps.
    run -0 python3 "$abs_top_srcdir/tests/cuda/occupancy.py" \
        80 256 40 0 90 256 168 0 100 129 16 0 80 32 16 0 80 32 256 0
    [ "$output" = "$(printf '%s\n' '80 256 40 0 6' '90 256 168 0 1' \
        '100 129 16 0 12' '80 32 16 0 32' '80 32 256 0 0')" ]
}

@test "occupancy agrees with cuda_occupancy.h" {
    local home
    home=$(made CUDA_HOME)
    [ -e "$home/include/cuda_occupancy.h" ] ||
        skip "cuda_occupancy.h was not found"
    # shellcheck disable=SC2086 # CC may have options
    ${CC:-cc} -std=c11 -Wall -Werror -isystem "$home/include" \
        "$abs_top_srcdir/tests/cuda/occupancy.c" -o occupancy
    ./occupancy >theirs
    [ "$(wc -l <theirs)" -gt 5000 ]
    cut -d ' ' -f 1-4 theirs |
        xargs python3 "$abs_top_srcdir/tests/cuda/occupancy.py" >ours
    cmp ours theirs
}

@test "innermost loops with products are counted" {
    cat >dump <<'END'
 Function f:
  REG:40 STACK:0 SHARED:1152 LOCAL:0 X:0
	Function : f
        /*0000*/                   MOV R1, R2 ;
        /*0010*/                   IADD3 R1, R1, 0x1, RZ ;
        /*0020*/                   HMMA.16816.F32.BF16 R4, R8, R12, R4 ;
        /*0030*/               @P0 BRA 0x20 ;
        /*0040*/               @P1 BRA 0x10 ;
        /*0050*/               @P2 BRA 0x70 ;
        /*0060*/                   EXIT ;
END
    report --cuobjdump='sh -c "cat dump" x' >table
    [ "$(tail -n 2 table | head -n 1)" = \
        'loop of  sm  instructions  products  outside' ]
    grep -qE '^f +80 +2 +1 +5$' table
}

# ranks.bash - processes that train together, for tests of the trainer.
#
# SPDX-License-Identifier: MIT

# start_ranks: start_training, makes x.pks, and lets mpirun start ranks.
start_ranks() {
    start_training
    allow_mpirun
    packs >x.pks
}

small=(packtrain --hidden=16 --heads=2 --layers=2 --stats=json --report=1)
train() {
    "${small[@]}" "$@"
}

# skip_without_mpi: for tests that need MPI; to run them by hand, set MPIRUN.
skip_without_mpi() {
    [ "${MPIRUN:-no}" != no ] || skip "packtrain is built without MPI"
}

# ranks N COMMAND...
ranks() {
    "$MPIRUN" -n "$@"
}

# curve FILE: steps, losses and gradients, and counts.
curve() {
    sed -E 's/"(step|loss|mlm|nsp|gradient)": //g
        s/, "(sequences|rate)": [^,]*//g; s/, "seconds.*//; s/[{,]/ /g' "$1"
}

# same_curve FILE FILE: the same counts, and losses to 1e-5.
same_curve() {
    [ -s "$1" ]
    paste <(curve "$1") <(curve "$2") | awk '
        function same(a, b, i) {
            if (i < 2 || i > 5)
                return a == b
            return a <= b * (1 + 1e-5) && b <= a * (1 + 1e-5)
        }
        NF % 2 { bad = 1 }
        {
            for (i = 1; i <= NF / 2; i++)
                if (!same($i, $(i + NF / 2), i))
                    bad = 1
        }
        END { exit bad }'
}

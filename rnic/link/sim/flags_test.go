package sim

import "flag"

// The soak's flags, so that "go test ./rnic/link/sim/... -sim.n=10000" runs:
// all test binaries of a run get the same flags. They mean nothing here.
var (
	_ = flag.Int("sim.n", 0, "of the soak")
	_ = flag.Uint64("sim.seed", 0, "of the soak")
	_ = flag.Uint64("sim.from", 0, "of the soak")
)

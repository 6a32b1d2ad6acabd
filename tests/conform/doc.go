// Package conform holds every kernel to the same behaviour: one suite over
// uapi, kshim/verbs and the system-call line itself, run on the emulator over
// an in-memory network, on the emulator over UDP, in a program whose system
// calls the emulator answers, and, in a guest, on Linux rdma_rxe.
//
// It has no code but tests, and knows nothing of how a kernel does what it
// does: a system (system_test.go) says how to open two devices, or the same one
// twice, and nothing else differs.
//
// How a test flows: a case (cases_*_test.go) drives objects, which it may have
// from a common set-up (setup_test.go), through a rig (rig_test.go) and writes
// down what it sees, line by line: errnos, statuses, states, bytes; never keys,
// numbers or times that depend on the run. The lines are its observation. The
// one recorded from Linux 6.1 rdma_rxe lies in testdata, a file per group of
// cases (record_test.go), and every kernel must give the same, line for line,
// but for the differences that declared_test.go lists with their reasons, and
// declared_newer_test.go for later Linux. Each
// kernel ends with
//
//	conform: kernel=… tests=N identical=N declared=N
//
// The second half makes random verbs programs from seeds (program_*_test.go),
// runs each on the emulator and on rxe, and compares what came of them. A
// failure prints its seed; CONFORM_SEED repeats it.
//
// On a machine with QEMU, tests/guest boots a guest and runs both there.
package conform

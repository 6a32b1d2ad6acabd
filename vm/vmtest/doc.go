// Package vmtest is for tests that need a guest: it says whether one can be
// booted here, and runs Go tests in it as subtests.
//
// It holds no tests and no policy of its own but one: what cannot run is
// skipped with its reason, except that with CI=true it fails.
//
// A test flows: Config checks QEMU, kernel and image (built once per process)
// and returns a configuration for vm.Run, vm.Start or Start; Start boots a
// guest, and GoTest runs packages' tests in it and reports each as a subtest.
package vmtest

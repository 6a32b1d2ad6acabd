// Package vmtest runs Go tests in a guest, as subtests of a test on the host,
// or skips them where no guest can be booted.
//
// It holds no tests and no policy of its own but one: a test that cannot run is
// skipped with its reason, except that with CI=true it fails.
//
// A test flows: Config checks QEMU, kernel and image (built once per process)
// and returns a configuration for vm.Run, vm.Start or Start; Start boots a
// guest, and GoTest runs packages' tests in it and reports each as a subtest.
package vmtest

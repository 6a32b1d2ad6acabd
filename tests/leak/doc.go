// Package leak makes a test binary fail when its tests leave something behind:
// goroutines or descriptors. It is for TestMain only:
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// It is no profiler and knows nothing of RDMA handles; uapitest.Pair checks
// those for each test. Main notes the open descriptors and the goroutines, runs
// the tests, waits until goroutines that are just ending have ended, and prints
// the leftovers.
package leak

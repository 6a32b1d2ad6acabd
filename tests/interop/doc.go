// Package interop lets the soft RNIC talk to Linux rdma_rxe over a wire, in a
// guest of package vm.
//
// It is no library, and it tests neither side alone: tests/conform compares the
// kernels' answers to calls; tests/virtual and tests/soak test the engine on a
// bad network.
//
// The tests of the files with the build tag "guest" run in a guest, which
// tests/guest boots for them (TestInterop). There, rxe0 is on one end of a veth
// pair in the initial network namespace and the soft RNIC on the other end in a
// namespace of its own (lab_guest_test.go): one process opens both through
// uapi, so every byte can be compared on both sides. A test makes a pair of
// connected ends (pair_guest_test.go) and moves messages from one to the other
// in both directions; or C programs talk to each other, one on rxe and one on
// the soft RNIC by what 'rdmashim run' does (run_guest_test.go). The C programs
// are the distribution's packages, fetched and unpacked but not installed
// (vm/cprograms). The tool's servers and clients run on both sides, too, and
// curl runs through its proxies (tool_guest_test.go, proxy_guest_test.go).
//
// The recordings soft-rxe-*.pcap of tests/testdata come from here, too:
//
//	go test ./tests/guest -run Interop -update
package interop

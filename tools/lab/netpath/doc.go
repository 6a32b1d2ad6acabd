// Package netpath puts a bad network between two network namespaces, without
// root and without the kernel's netem: real sockets, real datagrams, and a
// bridge in user space (tools/internal/bump) that delays, loses, reorders,
// duplicates, corrupts and limits them.
//
//	netpath.Enter()                          // in TestMain or main
//	net, err := netpath.New(netpath.Options{
//		AB: netpath.Path{Loss: 0.01, Delay: 20 * time.Millisecond, Seed: 1},
//		BA: netpath.Path{Delay: 20 * time.Millisecond},
//	})
//	defer net.Close()
//	net.A.Do(func() error { … })             // sockets opened here are A's
//	cmd := exec.Command(…); net.B.Do(cmd.Start) // a process in B
//
// A packet's way (Linux):
//
//  1. It leaves its namespace by one end of a veth pair (net_linux.go). The
//     kernel segments GSO sends before, so that a frame is a packet.
//  2. The bridge reads it on the other end, in a namespace that has nothing
//     else, decides its fate, and writes it to the other pair.
//
// It is a tool for tests and benchmarks of this project. It is no emulator of
// routers: there is one hop, no fragmentation, no ICMP, and a packet that is
// longer than the path's MTU vanishes and is counted. Faults that need no
// kernel are better injected within a device (rnic/link).
package netpath

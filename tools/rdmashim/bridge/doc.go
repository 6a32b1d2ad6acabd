// Package bridge is the command that stands in the wire between two
// interfaces: it passes Ethernet frames on and does to the RoCEv2 packets among
// them what rules of faults say, for devices that are not changed.
//
// A frame flows through tools/internal/bump, with a set of rules for each
// direction; what leaves goes into the counters and the capture (run_linux.go).
// The counters become a Report (report.go).
//
// The command is no switch and configures no interface. It needs packet
// sockets, which Linux alone has.
package bridge

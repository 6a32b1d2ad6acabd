// Package dump implements 'rdmashim dump': it shows the RoCEv2 packets of a
// capture file or an interface, and sums up the traffic of each pair of queue
// pairs.
//
// It judges no packet by itself: dissect takes packets apart, flow follows the
// connections that they belong to, live captures an interface.
//
// A packet flows: reader (dissect), tracker (flow), filter, and then to lines
// of text or JSON, to a pcapng file, and into the summary.
package dump

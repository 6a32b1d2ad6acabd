// Package guard bounds what strangers can do to a soft device.
//
// Any program can send to a UDP port, so each packet may be forged. The package
// holds four defences, each of which is a table or a few words without a lock,
// a clock or a goroutine: the device calls them under its own lock, with its
// own time.
//
//	Numbers   draws queue pair numbers that cannot be foreseen
//	Source    is where a queue pair's peer sends from: packets from elsewhere
//	          are dropped before the engine sees them
//	Guesses   delays new connections with addresses that try remote keys
//	Unready   bounds the log lines about peers that post no receives
//
// # Words
//
// A guess is a request that names a remote key which its queue pair may not
// use. A near peer is a soft device of the same host that was met
// (link.Near); its packets come by shared memory.
package guard

//go:build !linux

package registration

import (
	"net"
	"time"
)

// tcpInfo is known on Linux alone.
func tcpInfo(*net.TCPConn) (retransmitted uint64, rtt time.Duration) { return 0, 0 }

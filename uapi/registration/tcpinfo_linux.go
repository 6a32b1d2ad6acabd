package registration

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// tcpInfo is how many segments the kernel sent again on a connection, and its
// smoothed round trip; zeroes for one that is closed.
func tcpInfo(conn *net.TCPConn) (retransmitted uint64, rtt time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			retransmitted, rtt = uint64(info.Total_retrans), time.Duration(info.Rtt)*time.Microsecond
		}
	})
	return retransmitted, rtt
}

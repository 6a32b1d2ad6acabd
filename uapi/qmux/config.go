package qmux

import (
	"cmp"
	"crypto/tls"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Config has quic-go's names. The zero value of a field, and a nil Config, mean
// the default.
type Config struct {
	// HandshakeIdleTimeout bounds the handshake of a TLS connection; 5 s.
	HandshakeIdleTimeout time.Duration
	// MaxIdleTimeout is the silence that ends the connection; 30 s. The
	// smaller one of both sides holds.
	MaxIdleTimeout time.Duration
	// KeepAlivePeriod is the silence after which a ping goes out, at most half
	// of the idle time; none by default.
	KeepAlivePeriod time.Duration

	// The receive windows bound the bytes that the peer may send ahead, at
	// first and at most: 512 KiB and 6 MiB on a stream, 768 KiB and 15 MiB in
	// all.
	InitialStreamReceiveWindow     uint64
	MaxStreamReceiveWindow         uint64
	InitialConnectionReceiveWindow uint64
	MaxConnectionReceiveWindow     uint64

	// The streams of a kind that the peer may have at once; 100, none if
	// negative.
	MaxIncomingStreams    int64
	MaxIncomingUniStreams int64

	// EnableDatagrams lets the peer send datagrams.
	EnableDatagrams bool

	// MaxRecordSize bounds records in bytes; 16382, which fits a record of
	// TLS, and 262136 on RDMA. A datagram has at most 16382, if it is not set.
	MaxRecordSize int
	// Draft is the QMux draft to speak: 2 by default, or 1.
	Draft int
}

// streams returns a number of streams as the core has it.
func streams(n int64) uint64 { return uint64(max(0, cmp.Or(n, 100))) }

// rdmaRecord is the longest record on RDMA: with its Size, and the 4 bytes of
// an immediate, it is the longest chunk of a message ring
// (msgring.DefaultMaxChunk) of whole packets, which the device moves as one
// message. Four bytes more would make it two.
const rdmaRecord = 256<<10 - 8

// Check returns EINVAL, with the name of the field, for a configuration that
// Client and Server refuse.
func (cfg *Config) Check() error {
	_, err := core.New(cfg.core(false, nil), 0)
	return err
}

// recordSize returns the bound of records on a byte stream.
func recordSize(conn net.Conn) int {
	if _, secure := conn.(*tls.Conn); conn != nil && !secure && overRDMA(conn) {
		return rdmaRecord
	}
	return wire.DefaultMaxRecord
}

// overRDMA reports whether a byte stream is one of message rings.
func overRDMA(conn net.Conn) bool {
	a := conn.LocalAddr()
	return a != nil && a.Network() == "rdma"
}

// core returns the configuration of a side on a byte stream.
func (cfg *Config) core(server bool, conn net.Conn) core.Config {
	d := core.DefaultConfig(server)
	c := core.Config{
		Server:          server,
		Draft:           wire.Draft(cmp.Or(cfg.Draft, 2)),
		StreamWindow:    cmp.Or(cfg.InitialStreamReceiveWindow, d.StreamWindow),
		Window:          cmp.Or(cfg.InitialConnectionReceiveWindow, d.Window),
		MaxStreamWindow: cmp.Or(cfg.MaxStreamReceiveWindow, d.MaxStreamWindow),
		MaxWindow:       cmp.Or(cfg.MaxConnectionReceiveWindow, d.MaxWindow),
		MaxStreamsBidi:  streams(cfg.MaxIncomingStreams),
		MaxStreamsUni:   streams(cfg.MaxIncomingUniStreams),
		MaxRecord:       cmp.Or(cfg.MaxRecordSize, recordSize(conn)),
		IdleTimeout:     core.Duration(cmp.Or(cfg.MaxIdleTimeout, 30*time.Second)),
		KeepAlive:       core.Duration(cfg.KeepAlivePeriod),
	}
	if cfg.EnableDatagrams { // 128 of them may wait
		c.MaxDatagram = cmp.Or(cfg.MaxRecordSize, wire.DefaultMaxRecord)
	}
	return c
}

package core

import (
	"math"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Time is nanoseconds on a monotonic clock of the caller's choice.
type Time int64

// Never is later than any other Time.
const Never Time = math.MaxInt64

// Duration is nanoseconds.
type Duration int64

// Units of Duration.
const (
	Millisecond Duration = 1_000_000
	Second               = 1000 * Millisecond
)

// Config is fixed when a connection is created.
type Config struct {
	Server bool       // the side that was connected to
	Draft  wire.Draft // 0: Draft2

	StreamWindow    uint64 // bytes the peer may send ahead on a stream, at first
	MaxStreamWindow uint64 // … and at most, as far as windows grow
	Window          uint64 // bytes the peer may send ahead on all streams, at first
	MaxWindow       uint64 // … and at most

	MaxStreamsBidi uint64 // bidirectional streams of the peer at once
	MaxStreamsUni  uint64

	// MaxRecord bounds the records sent and received, in bytes without the
	// Size: 16382 to 1 MiB. The peer's bound holds too.
	MaxRecord int

	MaxDatagram int      // bytes of a whole DATAGRAM frame that is taken, 0: none
	IdleTimeout Duration // silence that ends the connection, 0: none
	KeepAlive   Duration // silence after which a ping is sent, 0: none
}

// DefaultConfig has windows that grow as quic-go's do, 100 streams of each
// kind, the default record, datagrams as long as it, and 30 s of idle time.
func DefaultConfig(server bool) Config {
	return Config{
		Server:          server,
		Draft:           wire.Draft2,
		StreamWindow:    512 << 10,
		MaxStreamWindow: 6 << 20,
		Window:          768 << 10,
		MaxWindow:       15 << 20,
		MaxStreamsBidi:  100,
		MaxStreamsUni:   100,
		MaxRecord:       wire.DefaultMaxRecord,
		MaxDatagram:     wire.DefaultMaxRecord,
		IdleTimeout:     30 * Second,
	}
}

// Limits that no Config changes.
const (
	maxRecord     = 1 << 20
	maxWindow     = 1 << 40    // bytes
	maxStreams    = 1 << 20    // streams of a kind at once
	maxParameters = 4 << 10    // bytes of the peer's parameters
	maxReason     = 1 << 10    // bytes of a reason, either way
	maxDatagrams  = 128        // datagrams that wait for the program, and for the peer
	linger        = 3 * Second // from a close to the peer's half-close
	maxWaste      = 10_000     // frames a second that change nothing
	pingEvery     = Second     // between the pings that measure the round trip
	maxIdle       = 1 << 40    // milliseconds: 34 years
	leastLent     = 4 << 10    // bytes of data that are worth a piece of their own
)

// check returns the configuration with its defaults, or what is wrong with it.
func (cfg Config) check() (Config, error) {
	if cfg.Draft == 0 {
		cfg.Draft = wire.Draft2
	}
	if cfg.MaxRecord == 0 {
		cfg.MaxRecord = wire.DefaultMaxRecord
	}
	cfg.MaxStreamWindow = max(cfg.MaxStreamWindow, cfg.StreamWindow)
	cfg.MaxWindow = max(cfg.MaxWindow, cfg.Window)
	switch {
	case !cfg.Draft.Valid():
		return cfg, errConfig("Draft", "1 to 3")
	case cfg.MaxRecord < wire.DefaultMaxRecord || cfg.MaxRecord > maxRecord:
		return cfg, errConfig("MaxRecord", "16382 bytes to 1 MiB")
	case cfg.MaxStreamWindow > maxWindow || cfg.MaxWindow > maxWindow:
		return cfg, errConfig("windows", "at most 1 TiB")
	case cfg.MaxStreamsBidi > maxStreams || cfg.MaxStreamsUni > maxStreams:
		return cfg, errConfig("MaxStreams", "at most 2^20")
	case cfg.MaxDatagram < 0 || cfg.MaxDatagram > cfg.MaxRecord:
		return cfg, errConfig("MaxDatagram", "0 to MaxRecord")
	case cfg.IdleTimeout < 0 || cfg.KeepAlive < 0:
		return cfg, errConfig("IdleTimeout and KeepAlive", "0 or more")
	}
	return cfg, nil
}

// parameters is what the peer is told of a configuration.
func (cfg *Config) parameters() wire.Parameters {
	return wire.Parameters{
		MaxIdleTimeout:       uint64((cfg.IdleTimeout + Millisecond - 1) / Millisecond),
		InitialMaxData:       cfg.Window,
		MaxStreamDataLocal:   cfg.StreamWindow,
		MaxStreamDataRemote:  cfg.StreamWindow,
		MaxStreamDataUni:     cfg.StreamWindow,
		MaxStreamsBidi:       cfg.MaxStreamsBidi,
		MaxStreamsUni:        cfg.MaxStreamsUni,
		MaxDatagramFrameSize: uint64(cfg.MaxDatagram),
		MaxRecordSize:        uint64(cfg.MaxRecord),
		ResetStreamAt:        cfg.Draft.ResetStreamAt(),
	}
}

//go:build !linux

package device

import (
	"log/slog"
	"net/netip"
	"syscall"
)

// Other systems have no abstract UNIX sockets: addresses are not shared there.

type portMapper struct{}

func openPortMapper(netip.Addr, func(uint64, uint16) (func(), error), *slog.Logger) *portMapper {
	return nil
}

func (*portMapper) close() {}

func (*portMapper) taker(uint64) int { return 0 }

func mayShare(netip.Addr) error { return syscall.ENOTSUP }

type neighbour struct {
	own func() (release func(), err error)
}

func newNeighbour(netip.Addr, uint16, *slog.Logger) *neighbour { return &neighbour{} }

func (*neighbour) announce(uint64) (end func(), err error) { return func() {}, nil }

func (*neighbour) wait() {}

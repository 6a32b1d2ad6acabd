//go:build !linux

package live

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// Source is an interface whose packets are being captured; there are none here.
type Source struct{}

// Open answers ENOTSUP.
func Open(iface string, _ uint16) (*Source, error) {
	return nil, fmt.Errorf("capture on %s: interfaces are captured on Linux only, not on %s; read a file of tcpdump or Wireshark instead: %w", iface, runtime.GOOS, syscall.ENOTSUP)
}

// Stop, Next, Missing and Close are those of a Source, which this system does
// not have.
func (*Source) Stop()                         {}
func (*Source) Next() (dissect.Record, error) { return dissect.Record{}, syscall.ENOTSUP }
func (*Source) Missing() uint64               { return 0 }
func (*Source) Close() error                  { return nil }

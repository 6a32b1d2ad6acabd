package capture

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// BufferLimit is how many bytes may wait to be written before packets are left
// out of the file.
const BufferLimit = 16 << 20

// closeTime bounds Close's wait for a file that does not take the rest, such as
// a pipe without a reader.
const closeTime = 2 * time.Second

// file is a capture that is being written: a link.Tap. Packets go
// Datagram → fill → run → the file.
type file struct {
	out    io.WriteCloser
	failed func(error) // called once, by run

	mu      sync.Mutex // guards all below
	ready   *sync.Cond // fill has bytes, or closing
	fill    []byte     // blocks to be written
	filled  uint64     // packets in fill
	spare   []byte     // the other buffer, while it is not being written
	seen    uint64     // packets
	missing uint64     // of these, not in the file
	broken  bool       // a write failed: nothing more is written
	closing bool

	done chan struct{} // closed when run has ended
}

// create opens the file at path (privatefile.Open) and begins a capture with
// it. A file that exists is replaced; a pipe must have a reader. An error Is
// what the system said, and EBUSY when a capture is being written there.
func create(path, name, description string, failed func(error)) (*file, error) {
	out, err := privatefile.Open(path, os.O_WRONLY|os.O_CREATE|openFlags)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	info, err := out.Stat()
	if err == nil && info.Mode().IsRegular() {
		if err = lock(out); err != nil {
			err = fmt.Errorf("%s: another device writes its packets there; give each device a file of its own: %w", path, syscall.EBUSY)
		} else {
			err = out.Truncate(0)
		}
	}
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("capture: %w", err)
	}
	return begin(out, name, description, failed), nil
}

// begin begins a capture on out, which it closes in the end.
func begin(out io.WriteCloser, name, description string, failed func(error)) *file {
	f := &file{out: out, failed: failed, done: make(chan struct{})}
	f.ready = sync.NewCond(&f.mu)
	f.fill = appendHeader(f.fill, name, description)
	go f.run()
	return f
}

// Datagram implements link.Tap.
func (f *file) Datagram(way link.Way, src, dst netip.AddrPort, id uint16, head, payload, tail []byte) {
	src, dst = plain(src), plain(dst)
	n := frameLen(src.Addr(), dst.Addr(), len(head)+len(payload)+len(tail))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if n == 0 || f.broken || f.closing || len(f.fill)+n+packetOverhead > BufferLimit {
		f.missing++
		return
	}
	start := len(f.fill)
	// The time is read under the lock, so that the file's order is that of
	// time.
	f.fill = beginPacket(f.fill, time.Now(), n)
	f.fill = appendFrame(f.fill, src, dst, id, head, payload, tail)
	f.fill = endPacket(f.fill, start, n, way)
	f.filled++
	f.ready.Signal()
}

// plain brings an address into the form that is on the wire.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// run writes what Datagram fills until the capture is closed and all is
// written.
func (f *file) run() {
	defer close(f.done)
	for {
		b, packets, last := f.take()
		_, err := f.out.Write(b)
		f.put(b, packets, err)
		if last || err != nil {
			// Some file systems say only now that they had no room.
			if e := f.out.Close(); err == nil {
				err = e
			}
			if err != nil && f.failed != nil {
				f.failed(err)
			}
			return
		}
	}
}

// take waits for bytes to write. last holds for the end of the capture.
func (f *file) take() (b []byte, packets uint64, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.fill) == 0 && !f.closing {
		f.ready.Wait()
	}
	if last = f.closing; last {
		f.fill = appendStatistics(f.fill, time.Now(), f.seen, f.missing)
	}
	b, packets = f.fill, f.filled
	f.fill, f.filled, f.spare = f.spare[:0], 0, nil
	return b, packets, last
}

// put takes a buffer back.
func (f *file) put(b []byte, packets uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spare = b[:0]
	if err != nil {
		f.missing += packets + f.filled
		f.broken = true
		f.fill, f.filled, f.spare = nil, 0, nil
	}
}

// counters adds how many packets were seen, and how many of these are missing
// in the file.
func (f *file) counters(dst []link.Counter) []link.Counter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(dst, link.Counter{Name: "pcap_pkts", Value: f.seen}, link.Counter{Name: "pcap_drop", Value: f.missing})
}

// close writes what is left and closes the file. It is idempotent.
func (f *file) close() {
	f.mu.Lock()
	if first := !f.closing; first {
		f.closing = true
		f.ready.Signal()
		// A file on a disk knows no deadline and needs none.
		if d, ok := f.out.(interface{ SetWriteDeadline(time.Time) error }); ok {
			_ = d.SetWriteDeadline(time.Now().Add(closeTime))
		}
	}
	f.mu.Unlock()
	<-f.done
}

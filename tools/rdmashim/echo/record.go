package echo

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

// maxSegment is how many bytes a recorded segment holds at most.
const maxSegment = 32 << 10

// recorder writes what connections say into a pcap file of raw IP packets, as
// TCP segments that never were on a wire: dump and Wireshark read it, whatever
// the bytes went by. A nil recorder records nothing.
type recorder struct {
	mu  sync.Mutex
	f   *os.File
	w   *pcapgo.Writer
	err error // guarded by mu: the first of the file
}

func newRecorder(path string) (*recorder, error) {
	f, err := privatefile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	r := &recorder{f: f, w: pcapgo.NewWriterNanos(f)}
	return r, r.w.WriteFileHeader(1<<18, layers.LinkTypeRaw)
}

// close ends the file. The error is the first that writing met.
func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.f.Close(); r.err == nil {
		r.err = err
	}
	if r.err != nil {
		return fmt.Errorf("--record: %w", r.err)
	}
	return nil
}

// recording is one direction of a connection. A nil one records nothing.
type recording struct {
	r        *recorder
	src, dst netip.AddrPort
	seq      uint32 // guarded by r.mu
	over     bool   // guarded by r.mu: its end was written
}

// connection begins the two directions of a connection.
func (r *recorder) connection(c net.Conn) (in, out *recording) {
	if r == nil {
		return nil, nil
	}
	here, there := addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())
	in, out = &recording{r: r, src: there, dst: here}, &recording{r: r, src: here, dst: there}
	for _, d := range []*recording{in, out} {
		d.segment(layers.TCP{SYN: true}, nil)
	}
	return in, out
}

// addrPort is an address of TCP or RDMA.
func addrPort(a net.Addr) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		p = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// write records bytes that went, and the end that came with them.
func (d *recording) write(b []byte, err error) {
	if d == nil {
		return
	}
	for len(b) > 0 {
		n := min(len(b), maxSegment)
		d.segment(layers.TCP{PSH: true}, b[:n])
		b = b[n:]
	}
	if err == io.EOF {
		d.end()
	}
}

// end records the end of the direction.
func (d *recording) end() {
	if d != nil {
		d.segment(layers.TCP{FIN: true}, nil)
	}
}

// segment writes a segment with the flags, and nothing behind the end.
func (d *recording) segment(s layers.TCP, data []byte) {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	if d.over {
		return
	}
	d.over = s.FIN
	s.SrcPort, s.DstPort = layers.TCPPort(d.src.Port()), layers.TCPPort(d.dst.Port())
	s.Seq, s.Window = d.seq, 1<<16-1
	d.seq += uint32(len(data))
	if s.SYN || s.FIN {
		d.seq++
	}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	} = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: d.src.Addr().AsSlice(), DstIP: d.dst.Addr().AsSlice()}
	if d.src.Addr().Is4() {
		ip = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: d.src.Addr().AsSlice(), DstIP: d.dst.Addr().AsSlice()}
	}
	err := s.SetNetworkLayerForChecksum(ip)
	b := gopacket.NewSerializeBuffer()
	if err == nil {
		err = gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, &s, gopacket.Payload(data))
	}
	if err == nil {
		n := len(b.Bytes())
		err = d.r.w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: n, Length: n}, b.Bytes())
	}
	if d.r.err == nil {
		d.r.err = err
	}
}

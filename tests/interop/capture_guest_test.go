//go:build guest && linux

package interop

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/live"
	"github.com/rdmashim/rdmashim/uapi"
)

// capture takes the RoCEv2 packets that pass eth0, rxe's end of the wire.
type capture struct {
	source *live.Source
	frames []frame
	steps  []step
	done   chan struct{}
}

type frame struct {
	at   time.Time
	data []byte
}

// step is one action of the test, with the time when it began.
type step struct {
	at   time.Time
	text string
}

func newCapture(t *testing.T) *capture {
	c := &capture{source: must.Get(live.Open("eth0", uapi.RoCEPort))(t), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for {
			r, err := c.source.Next()
			if err != nil {
				return
			}
			if isUDP(r.Data) {
				c.frames = append(c.frames, frame{r.Time, bytes.Clone(r.Data)})
			}
		}
	}()
	return c
}

// isUDP says whether a frame holds UDP. The filter of a capture also passes an
// ICMPv6 packet whose checksum is the port (4791).
func isUDP(b []byte) bool {
	return len(b) > 23 && (b[14]>>4 == 4 && b[23] == unix.IPPROTO_UDP || b[14]>>4 == 6 && b[20] == unix.IPPROTO_UDP)
}

func (c *capture) step(format string, args ...any) {
	c.steps = append(c.steps, step{time.Now(), fmt.Sprintf(format, args...)})
}

// stop ends the capture when the packets that came have been taken.
func (c *capture) stop() {
	c.source.Stop()
	<-c.done
	c.source.Close()
}

// pcap gives the classic file format.
func (c *capture) pcap(t *testing.T) []byte {
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	require.NoError(t, w.WriteFileHeader(1<<18, layers.LinkTypeEthernet))
	for _, f := range c.frames {
		require.NoError(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: f.at, CaptureLength: len(f.data), Length: len(f.data)}, f.data))
	}
	return b.Bytes()
}

// save writes the recording and its text where the host takes them from.
func (c *capture) save(t *testing.T, name, title string) {
	require.NotEmpty(t, c.frames, "nothing was captured")
	file := c.pcap(t)
	frames := must.Get(wiretest.Read(file))(t)
	require.Len(t, frames, len(c.frames))
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	release := unix.ByteSliceToString(uts.Release[:])
	short := strings.Join(strings.SplitN(release, ".", 3)[:2], ".")
	name = fmt.Sprintf("soft-rxe-%s-%s", short, name)
	text := fmt.Sprintf(recordingText, name, title, release, unix.ByteSliceToString(uts.Version[:]), netdevMTU, len(frames)) + c.lines(t, frames)
	for ext, data := range map[string][]byte{".pcap": file, ".txt": []byte(text)} {
		require.NoError(t, os.WriteFile(filepath.Join("/out", name+ext), data, 0o644))
	}
}

const recordingText = `%s.pcap: %s

Topology: Linux %s (%s) rdma_rxe in one virtual machine (QEMU). rxe0 on eth0 (10.77.0.1, fd00:77::1)
in the initial network namespace; the soft RNIC of this project (10.77.0.2 and up, fd00:77::2 and up) in a namespace of
its own, on the other end of the veth pair. MTU of both ends: %d.

Traffic: tests/interop opens both devices with package uapi in one process and connects a queue pair of one with one of
the other: "go test ./tests/interop -run Interop -update". Captured on eth0 with a packet socket, UDP port 4791, whole
packets. What the soft RNIC was told to lose is not in the file. UDP checksums that are not 0 are those of the soft side's
socket and incomplete: the veth pair never computes them.

%d packets. The ICRC of each one was recomputed from the captured bytes and is equal (IPv4: with the captured
identification).

Columns, as decoded by package wire: frame; time in s; source > destination; opcode; dqp = destination queue pair; psn;
flags: M = MigReq, A = acknowledge request, S = solicited event; the fields of the extended headers; len = payload bytes without
pad, pad = pad count. Lines that begin with == are the steps of the test, as they began.

`

// lines gives a line a packet, and the steps between them.
func (c *capture) lines(t *testing.T, frames []wiretest.Frame) string {
	var b strings.Builder
	steps := c.steps
	for i, f := range frames {
		for len(steps) > 0 && !steps[0].at.After(c.frames[i].at) {
			fmt.Fprintln(&b, "==", steps[0].text)
			steps = steps[1:]
		}
		flow := must.Get(wire.NewFlow(f.Src, f.Dst, f.DF))(t)
		require.True(t, flow.Check(f.UDP, f.ID), "frame %d: bad ICRC", f.Number)
		var p wire.Packet
		require.NoError(t, p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]), "frame %d", f.Number)
		fmt.Fprintf(&b, "%4d %10.6f %v > %v  %v (%d)  dqp=%v psn=0x%06x %s%s len=%d pad=%d\n", f.Number,
			c.frames[i].at.Sub(c.frames[0].at).Seconds(), f.Src.Addr(), f.Dst.Addr(), p.Opcode, uint8(p.Opcode),
			p.DestQPN, uint32(p.PSN), flagsOf(&p), fieldsOf(&p), len(p.Payload), p.Pad)
	}
	return b.String()
}

func flagsOf(p *wire.Packet) string {
	flags := []byte("---")
	for i, on := range []bool{p.MigReq, p.AckReq, p.Solicited} {
		if on {
			flags[i] = "MAS"[i]
		}
	}
	return string(flags)
}

func fieldsOf(p *wire.Packet) string {
	var b strings.Builder
	if p.Opcode.Carries(wire.HasDETH) {
		fmt.Fprintf(&b, " deth qkey=0x%08x sqp=%v", p.DETH.QKey, p.DETH.SrcQPN)
	}
	if p.Opcode.Carries(wire.HasRETH) {
		fmt.Fprintf(&b, " reth va=0x%016x rkey=0x%08x dmalen=%d", p.RETH.VA, uint32(p.RETH.RKey), p.RETH.DMALen)
	}
	if p.Opcode.Carries(wire.HasAtomicETH) {
		fmt.Fprintf(&b, " atomiceth va=0x%016x rkey=0x%08x swap/add=0x%016x cmp=0x%016x", p.AtomicETH.VA, uint32(p.AtomicETH.RKey), p.AtomicETH.SwapAdd, p.AtomicETH.Compare)
	}
	if p.Opcode.Carries(wire.HasImmDt) {
		fmt.Fprintf(&b, " imm=0x%08x", p.ImmDt.Data)
	}
	if p.Opcode.Carries(wire.HasIETH) {
		fmt.Fprintf(&b, " ieth rkey=0x%08x", p.IETH.RKey)
	}
	if p.Opcode.Carries(wire.HasAETH) {
		fmt.Fprintf(&b, " aeth syndrome=0x%02x (%v) msn=%d", uint8(p.AETH.Syndrome), p.AETH.Syndrome, uint32(p.AETH.MSN))
	}
	if p.Opcode.Carries(wire.HasAtomicAckETH) {
		fmt.Fprintf(&b, " orig=0x%016x", p.AtomicAckETH.Orig)
	}
	return b.String()
}

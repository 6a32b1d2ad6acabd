package uapi_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// tally counts the packets of a capture.
type tally struct {
	out, in, bad uint64
	extended     uint64 // of those out, with bits that the specification reserves
}

func readCapture(t *testing.T, path string, port uint16) (c tally) {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	r := must.Get(dissect.NewReader(bytes.NewReader(b), port, dissect.MaxUnzipped))(t)
	var p dissect.Packet
	for {
		err := r.Next(&p)
		if err == io.EOF {
			require.Zero(t, r.Missing())
			return c
		}
		require.NoError(t, err)
		if p.ICRC != dissect.OK {
			c.bad++
		} else {
			require.NoError(t, p.Err)
		}
		switch p.Direction {
		case dissect.Outbound:
			c.out++
			if p.Wire.Selective || p.Wire.PrivateMTU != 0 {
				c.extended++
			}
		case dissect.Inbound:
			c.in++
		}
	}
}

func counters(t *testing.T, d *uapi.Device) map[string]uint64 {
	t.Helper()
	return must.Get(d.Counters())(t)
}

// sentOut is how many packets left, below the faults, by a device's counters.
func sentOut(c map[string]uint64) uint64 { return c["sent_pkts"] - c["fault_loss"] + c["fault_dup"] }

// cameIn is how many came, by a device's counters.
func cameIn(c map[string]uint64) uint64 {
	n := c["rcvd_pkts"]
	for _, drop := range []string{"drop_icrc", "drop_malformed", "drop_opcode", "drop_qpn"} {
		n += c[drop]
	}
	return n
}

// A device's capture agrees with its counters: it holds every packet that the
// device sent, without those that the faults lost, and every packet that came.
func TestPcapHoldsWhatTheCountersSay(t *testing.T) {
	for _, c := range []struct{ name, a, b string }{
		{"sim", "sim?net=pcap1", "sim?net=pcap1"},
		{"soft", "soft?port=0", "soft?port=0"},
		{"soft with faults", "soft?port=0&loss=5%&dup=2%&seed=7", "soft?port=0&loss=5%&seed=8"},
		{"soft without extensions", "soft?port=0&extensions=off&loss=5%&seed=7", "soft?port=0&loss=5%&seed=8"},
		{"soft with corruption", "soft?port=0&corrupt=5%&seed=7", "soft?port=0&corrupt=5%&seed=8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.pcapng")
			a := openDevice(t, c.a+"&pcap="+path)
			b := openDevice(t, c.b)
			info := must.Get(a.QueryDevice())(t)
			pcapTransfer(t, a, b)
			// Until all that was sent has come, acknowledgements may be on
			// their way.
			require.Eventually(t, func() bool {
				x, y := counters(t, a), counters(t, b)
				return sentOut(x) == cameIn(y) && sentOut(y) == cameIn(x)
			}, 30*time.Second, time.Millisecond)
			after := counters(t, a)
			require.NoError(t, a.Close())

			got := readCapture(t, path, info.Address.Port())
			require.Equal(t, sentOut(after), got.out)
			require.Equal(t, cameIn(after), got.in)
			require.Equal(t, after["pcap_pkts"], got.out+got.in)
			require.Zero(t, after["pcap_drop"])
			require.Equal(t, strings.Contains(c.a, "extensions=off"), got.extended == 0)
			if strings.Contains(c.a, "corrupt") {
				require.NotZero(t, got.bad)
			} else {
				require.Zero(t, got.bad, "every ICRC is right")
			}
		})
	}
}

// pcapTransfer moves some bytes there and back.
func pcapTransfer(t *testing.T, a, b *uapi.Device) {
	t.Helper()
	const size = 320_000
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 2}, size)
	copy(x.Buf, bytes.Repeat([]byte("RDMA over files "), size/16))
	x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, size))
	x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, size))
	x.Next(2)
	require.Equal(t, x.Buf, y.Buf)
}

func TestPcapOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := uapi.Open("sim?pcap="+filepath.Join(dir, "no", "file"), uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = uapi.Open("soft?pcap="+dir, uapi.OpenConfig{})
	require.Error(t, err)
	require.ErrorContains(t, err, dir)

	path := filepath.Join(dir, "x")
	a := must.Get(uapi.Open("sim:10.0.0.1?net=pcap2&pcap="+path, uapi.OpenConfig{}))(t)
	again, err := uapi.Open("sim:10.0.0.1?net=pcap2&pcap="+path, uapi.OpenConfig{})
	require.NoError(t, err, "the same device")
	_, err = uapi.Open("sim:10.0.0.1?net=pcap2", uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "pcap="+path)
	require.NoError(t, again.Close())
	require.NoError(t, a.Close())
}

// Devices do not share a file; one name gives each its own.
func TestPcapOfSeveralDevices(t *testing.T) {
	dir := t.TempDir()
	shared := "sim?pcap=" + filepath.Join(dir, "x.pcapng")
	openDevice(t, shared)
	_, err := uapi.Open(shared, uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EBUSY)
	require.ErrorContains(t, err, "{device} and {pid}")

	each := "sim?net=pcap4&pcap=" + filepath.Join(dir, "{pid}-{device}.pcapng")
	a := openDevice(t, each)
	b := openDevice(t, each)
	var files [2]string
	for i, d := range []*uapi.Device{a, b} {
		info := must.Get(d.QueryDevice())(t)
		files[i] = filepath.Join(dir, fmt.Sprintf("%d-%s.pcapng", os.Getpid(), info.Name))
	}
	pcapTransfer(t, a, b)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	for _, f := range files {
		require.NotZero(t, readCapture(t, f, uapi.RoCEPort).out, f)
	}
}

// A full disk is told to the log; the device works on.
func TestPcapFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full; run it on Linux: ", err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	a := must.Get(uapi.Open("sim?net=pcap3&pcap=/dev/full", uapi.OpenConfig{Logger: logger}))(t)
	b := openDevice(t, "sim?net=pcap3")
	pcapTransfer(t, a, b)
	require.NoError(t, a.Close())
	require.Contains(t, log.String(), "no space left")
	require.Contains(t, log.String(), "file=/dev/full")
}

package dump

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// recording is a file of tests/testdata.
func recording(name string) string { return filepath.Join(root, "tests", "testdata", name) }

// dumpFile runs dump --json.
func dumpFile(t *testing.T, path string) (lines []Line) {
	t.Helper()
	o := clitest.RunTool(t, "dump", "-j", path).Well(t)
	require.Empty(t, o.Stderr)
	for text := range strings.Lines(o.Stdout) {
		var l Line
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		lines = append(lines, l)
	}
	return lines
}

// UnmarshalText lets tests read what the tool printed.
func (h *hex64) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 0, 64)
	*h = hex64(n)
	return err
}

// TestDumpText holds lines of every kind to what tshark showed when the
// recordings were made (the .txt beside each).
func TestDumpText(t *testing.T) {
	for _, c := range []struct {
		file   string
		number int
		want   string
	}{
		{"rxe-6.1-rc-mtu1024.pcap", 15, "20:52:47.134115000 10.99.0.1:50631 > 10.99.0.2:4791 RC SEND_ONLY_WITH_IMMEDIATE qpn 0x000057 psn 16777207 ackreq imm 0xdeadbe01 length 0 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 32, "20:52:47.275603000 10.99.0.1:50631 > 10.99.0.2:4791 RC SEND_LAST_WITH_IMMEDIATE qpn 0x000057 psn 2 ackreq imm 0xdeadbe04 length 3 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 61, "20:52:47.505084000 10.99.0.1:50631 > 10.99.0.2:4791 RC RDMA_WRITE_LAST_WITH_IMMEDIATE qpn 0x000057 psn 19 ackreq imm 0xdeadbe08 length 2 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 63, "20:52:47.522734000 10.99.0.1:50631 > 10.99.0.2:4791 RC RDMA_READ_REQUEST qpn 0x000057 psn 20 ackreq reth va 0x7f4495d40000 rkey 0x00000266 dmalen 0 length 0 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 83, "20:52:47.668267000 10.99.0.1:50631 > 10.99.0.2:4791 RC COMPARE_SWAP qpn 0x000057 psn 32 ackreq atomic va 0x7f4495d40000 rkey 0x00000266 swapadd 0x2222222222222222 compare 0x1111111111111111 length 0 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 84, "20:52:47.668721000 10.99.0.2:50631 > 10.99.0.1:4791 RC ATOMIC_ACKNOWLEDGE qpn 0x000011 psn 32 aeth ACK msn 35 original 0xf1eae3dcd5cec7c0 length 0 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 87, "20:52:47.705136000 10.99.0.1:50631 > 10.99.0.2:4791 RC FETCH_ADD qpn 0x000057 psn 34 ackreq atomic va 0x7f4495d40000 rkey 0x00000266 swapadd 0x10 compare 0x0 length 0 icrc ok"},
		{"rxe-6.1-rc-mtu1024.pcap", 94, "20:52:47.772495000 10.99.0.1:50631 > 10.99.0.2:4791 RC SEND_LAST_WITH_INVALIDATE qpn 0x000057 psn 38 ackreq invalidate 0x08000298 length 1024 icrc ok"},
		{"rxe-6.1-rc-errors.pcap", 47, "20:50:42.946563000 10.99.0.2:50952 > 10.99.0.1:4791 RC ACKNOWLEDGE qpn 0x000014 psn 10752 aeth RNR NAK timer 1 (0.01ms) msn 0 length 0 icrc ok"},
		{"rxe-6.1-uc-ud.pcap", 36, "20:52:51.657099000 10.99.0.1:49500 > 10.99.0.2:4791 UD SEND_ONLY_WITH_IMMEDIATE qpn 0x00005b psn 7 deth qkey 0x11223344 srcqpn 0x000015 imm 0xfeed0003 length 3 icrc ok"},
		{"rxe-6.1-uc-ud.pcap", 38, "20:52:51.701495000 10.99.0.1:49500 > 10.99.0.2:4791 UD SEND_ONLY qpn 0x00005b psn 9 deth qkey 0x11223344 srcqpn 0x000015 length 20 icrc ok"},
		{"rxe-6.1-ipv6.pcap", 5, "20:52:55.863685000 [fe80::3466:b4ff:fe7a:5e18]:51176 > [fe80::77:adff:fe5d:8ec]:4791 RC SEND_ONLY qpn 0x00005c psn 0 ackreq length 2 icrc ok"},
		{"rxe-6.1-ipv6.pcap", 60, "20:52:56.414096000 [fd00:99::2]:51408 > [fd00:99::1]:4791 RC ACKNOWLEDGE qpn 0x000018 psn 10 aeth ACK msn 9 length 0 icrc ok"},
		{"rxe-6.1-cm.pcap", 1, "20:50:51.474868000 10.99.0.1:55410 > 10.99.0.2:4791 UD SEND_ONLY qpn 0x000001 psn 0 ackreq deth qkey 0x80010000 srcqpn 0x000001 mad CM ConnectRequest tid 0x288fad9b4 local 0xb4d9fa88 service tcp/7471 qpn 0x000044 psn 13842884 ip 10.99.0.1:58183 > 10.99.0.2 private 26 length 256 icrc ok"},
		{"rxe-7.2-atomic-write.pcap", 5, "20:49:46.454871000 10.99.0.1:50631 > 10.99.0.2:4791 RC ATOMIC_WRITE qpn 0x000057 psn 2236964 ackreq reth va 0x7f38b8648000 rkey 0x0000033b dmalen 8 length 8 icrc ok"},
	} {
		o := clitest.RunTool(t, "dump", recording(c.file)).Well(t)
		lines := strings.Split(o.Stdout, "\n")
		require.Equal(t, c.want, lines[c.number-1], "%s packet %d", c.file, c.number)
	}
}

func TestDumpUsage(t *testing.T) {
	file := recording("rxe-6.1-uc-ud.pcap")
	b := readFile(t, file)
	put := func(name string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	cut, mine := put("cut.pcap", b[:1000]), put("mine.pcap", b)
	streams := readFile(t, qmuxRecordings+"tcp.pcapng")
	half := put("half.pcapng", streams[:len(streams)/2])
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"dump", 2, "", "one capture file"},
		{"dump a b", 2, "", "one capture file"},
		{"dump --port 0 x", 2, "", "from 1 to 65535"},
		{"dump /nonexistent/file", 1, "", "no such file"},
		{"dump " + root, 1, "", "is a directory"},
		{"dump " + filepath.Join(root, "README.md"), 1, "", "README.md: no pcap or pcapng file"},
		{"dump /dev/null", 1, "", "/dev/null: 0 bytes are no capture file"},
		{"dump -", 1, "", "standard input: 0 bytes are no capture file"},
		{"dump " + cut, 1, "UC SEND_ONLY", "cut.pcap: the file is damaged behind record"},
		{"dump --qpn 0x5a " + cut, 1, "UC SEND_ONLY", "cut.pcap: the file is damaged behind record"},
		{"dump --summary " + cut, 1, "UC 10.99.0.1 qpn", "cut.pcap: the file is damaged behind record"},
		{"dump --summary --qpn 1 README.md", 1, "", "README.md: no such file"},
		{"dump -w /dev/full " + file, 1, "", "/dev/full: no space left"},
		{"dump -p 4792 " + file, 0, "", ""},
		{"dump --live lo " + file, 2, "", "not both"},
		{"dump --qpn 0x1000000 " + file, 2, "", "no queue pair number"},
		{"dump --qpn frob " + file, 2, "", "no queue pair number"},
		{"dump --opcode frob " + file, 2, "", "no opcode"},
		{"dump --opcode 256 " + file, 2, "", "list them (try"}, // and nothing is near to a number
		{"dump --opcode RC_SEND_ONLI " + file, 2, "", "near to it: RC SEND_ONLY"},
		{"dump -c -1 " + file, 2, "", "wants a number"},
		{"dump -w - --summary " + file, 2, "", "nothing else"},
		{"dump -w /nonexistent/dir/file " + file, 1, "", "no such file"},
		{"dump -w " + mine + " " + mine, 1, "", "is being read"},
		{"dump -w " + mine + " /nonexistent", 1, "", "no such file"},
		{"dump --live nosuchif0", 1, "", "nosuchif0"},
		{"dump --qmux --live lo", 2, "", "--qmux shows a file"},
		{"dump --qmux --summary x", 2, "", "--qmux shows a file"},
		{"dump --qmux --qpn 7 x", 2, "", "--qmux shows a file"},
		{"dump --qmux /nonexistent/file", 1, "", "no such file"},
		{"dump --qmux /dev/null", 1, "", "/dev/null: 0 bytes are no capture file"},
		{"dump --qmux " + root, 1, "", "is a directory"},
		{"dump --qmux " + half, 1, "record 1 length 53: QX_TRANSPORT_PARAMETERS", "half.pcapng: the file is damaged behind record"},
		{"dump --qmux " + recording("rxe-6.1-cm.pcap"), 0, "", ""},
	} {
		o := clitest.RunTool(t, strings.Fields(c.args)...)
		require.Equal(t, c.code, o.Code, "%s: %s", c.args, o.Stderr)
		require.Contains(t, o.Stdout, c.stdout)
		require.Equal(t, c.stdout == "", o.Stdout == "", c.args)
		require.Contains(t, o.Stderr, c.stderr)
		if c.code != 0 {
			require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
		}
	}
	require.Equal(t, b, readFile(t, mine), "nothing was written over")
}

func TestDumpStandardInput(t *testing.T) {
	f := must.Get(os.Open(recording("rxe-6.1-cm.pcap")))(t)
	defer f.Close()
	cmd := clitest.Tool(t, "dump", "-")
	cmd.Stdin = f
	o := clitest.Finish(t, cmd).Well(t)
	require.Equal(t, 42, strings.Count(o.Stdout, "\n"))
	require.Contains(t, o.Stdout, "UD SEND_ONLY qpn 0x000001 psn 0 ackreq deth qkey 0x80010000 srcqpn 0x000001 mad CM ConnectRequest")
}

// isCapture reports whether a file holds n packets.
func isCapture(b *bytes.Buffer, n int) bool {
	r, err := dissect.NewReader(b, 0, dissect.MaxUnzipped)
	for ; err == nil && n > 0; n-- {
		err = r.Next(new(dissect.Packet))
	}
	return err == nil
}

// Any bytes are lines of text or JSON, or an error.
func FuzzDump(f *testing.F) {
	for _, name := range []string{"rxe-6.1-uc-ud.pcap", "rxe-6.1-ipv6.pcap", "rxe-6.1-cm.pcap", "rxe-6.1-rc-errors.pcap"} {
		b := must.Get(os.ReadFile(recording(name)))(f)
		f.Add(b[:1500])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var text, lines bytes.Buffer
		plain := dumper{o: options{port: 4791}, stdout: &text, stderr: io.Discard}
		err := plain.read("fuzz", bytes.NewReader(b), nil)
		told := dumper{o: options{port: 4791, asJSON: true, explain: true}, stdout: &lines, stderr: io.Discard, flush: true}
		again := told.read("fuzz", bytes.NewReader(b), nil)
		written := dumper{o: options{port: 4791, file: "-"}, stdout: new(bytes.Buffer), stderr: io.Discard}
		if e := written.read("fuzz", bytes.NewReader(b), nil); (err == nil) != (e == nil) || e == nil && written.passed > 0 && !isCapture(written.stdout.(*bytes.Buffer), written.passed) {
			t.Fatalf("text: %v, file: %v", err, e)
		}
		if (err == nil) != (again == nil) {
			t.Fatalf("text: %v, JSON: %v", err, again)
		}
		n := strings.Count(text.String(), "\n")
		if n != strings.Count(lines.String(), "\n")-strings.Count(lines.String(), `{"others":`) {
			t.Fatalf("%d lines of text:\n%s\nJSON:\n%s", n, &text, &lines)
		}
		for d := json.NewDecoder(&lines); d.More(); {
			var l Line
			if err := d.Decode(&l); err != nil {
				t.Fatal(err)
			}
		}
	})
}

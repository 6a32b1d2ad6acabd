package dump

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/qmux"
)

const qmuxRecordings = "qmux/testdata/"

// TestDumpQMux shows a capture, standard input and the bytes of one side, as
// text and JSON.
func TestDumpQMux(t *testing.T) {
	text := clitest.RunTool(t, "dump", "--qmux", qmuxRecordings+"rdma.pcapng").Well(t)
	require.Empty(t, text.Stderr)
	require.Contains(t, text.Stdout, " record 3 length 5: STREAM id=0 offset=3893 len=0 fin\n")
	require.Regexp(t, `(?m)^21:49:08\.\d{9} 127\.0\.0\.2 qpn 0xd1723e > 127\.0\.0\.1 qpn 0x167613 end$`, text.Stdout)

	o := clitest.RunTool(t, "dump", "--qmux", "-j", "-c", "3", qmuxRecordings+"rdma.pcapng")
	require.Zero(t, o.Code, o.Stderr)
	require.Equal(t, 3, strings.Count(o.Stdout, "\n"))
	var lines []qmux.Line
	for d := json.NewDecoder(strings.NewReader(o.Stdout)); d.More(); {
		var l qmux.Line
		require.NoError(t, d.Decode(&l))
		lines = append(lines, l)
	}
	require.Equal(t, []string{"rdma", "127.0.0.2 qpn 0xd1723e"}, []string{lines[2].Transport, lines[2].Src})
	require.EqualValues(t, 30000, lines[0].Frames[0].Parameters["max_idle_timeout"])
	require.Equal(t, map[string]uint64{"id": 0, "len": 3893}, lines[2].Frames[0].Fields)

	in, err := os.Open(qmuxRecordings + "tcp.pcapng")
	require.NoError(t, err)
	defer in.Close()
	cmd := clitest.Tool(t, "dump", "--qmux", "-")
	cmd.Stdin = in
	o = clitest.Finish(t, cmd).Well(t)
	require.Contains(t, o.Stdout, `APPLICATION_CLOSE code=0 ""`)

	raw := filepath.Join(t.TempDir(), "raw")
	require.NoError(t, os.WriteFile(raw, []byte("\x09\xff\x51\x53\x30\x0d\x0a\x0d\x0a\x00\x05\x0b\x00\x02hi\x04\x1c"), 0o600))
	o = clitest.RunTool(t, "dump", "--qmux", raw).Well(t)
	require.Equal(t, "record 1 length 9: QX_TRANSPORT_PARAMETERS len=0 ()\nrecord 2 length 5: STREAM id=0 len=2 fin\n"+
		"problem: it ends within a record of 4 bytes, of which it has 1\n", o.Stdout)
}

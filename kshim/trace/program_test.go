package trace_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

func TestMain(m *testing.M) { leak.Main(m) }

// traceTo switches tracing on for the contexts that the test opens and gives
// the file.
func traceTo(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "trace")
	t.Setenv(trace.EnvTrace, file)
	return file
}

// program uses two contexts as programs do: it registers, connects, writes and
// sends with polling, makes a mistake, and tidies up.
func program(t *testing.T) {
	a := must.Get(uapi.Open("sim?net=trace", uapi.OpenConfig{}))(t)
	b := must.Get(uapi.Open("sim?net=trace", uapi.OpenConfig{}))(t)
	src, dst := make([]byte, 4096), make([]byte, 4096)
	srcMR := must.Get(a.RegMR(src, uapi.AccessLocalWrite))(t)
	dstMR := must.Get(b.RegMR(dst, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))(t)
	qa := must.Get(a.CreateQP(4, 4))(t)
	qb := must.Get(b.CreateQP(4, 4))(t)
	ea := must.Get(a.LocalEndpoint(qa))(t)
	eb := must.Get(b.LocalEndpoint(qb))(t)
	require.NoError(t, a.ConnectQP(qa, eb))
	require.NoError(t, b.ConnectQP(qb, ea))
	there := must.Get(b.QueryMR(dstMR))(t)
	copy(src, "traced")
	must.Get(a.PostWrite(qa, srcMR, 0, there.Addr, there.RKey, 6))(t)
	poll(t, a, qa)
	require.Equal(t, "traced", string(dst[:6]))
	require.NoError(t, a.DestroyQP(qa))
	require.NoError(t, a.DeregMR(srcMR))
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// poll waits for a completion without making a call.
func poll(t *testing.T, d *uapi.Device, qp uapi.QP) {
	wc := make([]uapi.WC, 1)
	for {
		n := must.Get(d.PollCQ(qp, wc))(t)
		if n == 1 {
			require.NoError(t, wc[0].Err())
			return
		}
	}
}

// The parts of a line that differ each time, or belong to other tests.
var varying = []struct{ re, with string }{
	{`^\[\d+ (sim\d+)(#\d+)?\]`, "[PID $1]"},
	{`= \d "sim`, `= N "sim`},
	{`(start|hca_va)=0x[0-9a-f]+`, "$1=ADDR"},
	{`(lkey|rkey)=0x[0-9a-f]+`, "$1=KEY"},
	{`(qpn|dest_qp_num)=\d+`, "$1=QPN"},
	{`(rq_psn|sq_psn)=(0x[0-9a-f]+|0)`, "$1=PSN"},
	{`(offset)=0x[0-9a-f]+, (size|length)=\d+`, "$1=OFFSET, $2=SIZE"},
	{`= 0x[0-9a-f]+$`, "= ADDR"},
	{`munmap\(0x[0-9a-f]+, length=\d+\)`, "munmap(ADDR, length=SIZE)"},
	{`(QUERY_(DEVICE|PORT) .*\) = 0) \{.*\}$`, "$1 {...}"},
}

// normal takes varying values out of a trace, and reads of event files, which
// end at any time.
func normal(text string) string {
	var b strings.Builder
	devices := map[string]string{} // in the order they come
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for _, v := range varying {
			line = regexp.MustCompile(v.re).ReplaceAllString(line, v.with)
		}
		line = regexp.MustCompile(`sim\d+`).ReplaceAllStringFunc(line, func(name string) string {
			if devices[name] == "" {
				devices[name] = "sim" + string(rune('A'+len(devices)))
			}
			return devices[name]
		})
		if !regexp.MustCompile(`read\([45]\)`).MatchString(line) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// TestProgram holds the trace of a whole program. When the client makes other
// calls than before, look whether that is meant, and run it with -update.
func TestProgram(t *testing.T) {
	file := traceTo(t)
	program(t)
	text := must.Get(os.ReadFile(file))(t)
	got := normal(string(text))
	if *update {
		require.NoError(t, os.WriteFile("testdata/program.golden", []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile("testdata/program.golden"))(t)
	lines := strings.Split(got, "\n")
	for i, line := range strings.Split(string(want), "\n") {
		require.Less(t, i, len(lines), "there is no %s", line)
		require.Equal(t, line, lines[i], "line %d", i+1)
	}
	require.Equal(t, strings.Count(string(want), "\n"), strings.Count(got, "\n"))
	require.NotContains(t, string(text), "not in announced memory")
	require.Regexp(t, `read\([45]\) = -1 EBADF \(Bad file descriptor\): use of closed file\n`, string(text), "the readers of events end with the context")
}

// TestOff: nothing is wrapped, and nothing written, unless it is asked for.
func TestOff(t *testing.T) {
	for _, v := range []string{"", "0"} {
		t.Setenv(trace.EnvTrace, v)
		k := trace.New(nil, nil) // any kernel
		same, done, err := trace.Env(k, "x")
		require.NoError(t, err)
		require.Same(t, k, same)
		done()
	}
	program(t)
}

// TestCannotOpen: a trace that was asked for and cannot be had is said, and
// leaves nothing open.
func TestCannotOpen(t *testing.T) {
	t.Setenv(trace.EnvTrace, filepath.Join(t.TempDir(), "no", "such", "directory"))
	_, err := uapi.Open("sim", uapi.OpenConfig{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, trace.EnvTrace)
}

// TestFileIsPrivate: a trace shows a program's calls, and is made for its user
// alone; the target of a symbolic link stays as it was.
func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has neither modes nor O_NOFOLLOW; run it on a Unix")
	}
	file := traceTo(t)
	program(t)
	info := must.Get(os.Stat(file))(t)
	require.Zero(t, info.Mode().Perm()&0o077, info.Mode())

	link := file + ".link"
	require.NoError(t, os.Symlink(file, link))
	t.Setenv(trace.EnvTrace, link)
	_, err := uapi.Open("sim", uapi.OpenConfig{})
	require.ErrorContains(t, err, link)
	require.ErrorContains(t, err, "symbolic link")
	after := must.Get(os.Stat(file))(t)
	require.Equal(t, info.Size(), after.Size())
}

// TestFullDisk: a trace that can no longer be written is said once, whichever
// of the kernels that share it meets it first; the program goes on.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full; run it on Linux: ", err)
	}
	t.Setenv(trace.EnvTrace, "/dev/full")
	said, w, err := os.Pipe()
	require.NoError(t, err)
	defer said.Close()
	stderr := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = stderr }()
	program(t)
	require.NoError(t, w.Close())
	text := must.Get(io.ReadAll(said))(t)
	require.Equal(t, "rdmashim: RDMASHIM_TRACE: write /dev/full: no space left on device; the trace ends here\n", string(text))
}

// TestTimes: with times, each line says when and how long.
func TestTimes(t *testing.T) {
	file := traceTo(t)
	t.Setenv(trace.EnvTime, "1")
	t.Setenv(trace.EnvPin, "1")
	d := must.Get(uapi.Open("sim", uapi.OpenConfig{}))(t)
	require.NoError(t, d.Close())
	text := must.Get(os.ReadFile(file))(t)
	require.Contains(t, string(text), " pin(4096) = 0x")
	require.Contains(t, string(text), " unpin(0x")
	for line := range strings.Lines(string(text)) {
		require.Regexp(t, `^\[\d+ sim\d+(#\d+)?\] +\d+\.\d{6} .* <\d+\.\d{6}>\n$`, line)
	}
}

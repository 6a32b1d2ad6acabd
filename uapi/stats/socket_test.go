//go:build linux || darwin

package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A busy machine is not silent.
func init() { silence, answerTime = time.Minute, time.Minute }

// private gives the test a directory for sockets.
func private(t *testing.T) string {
	t.Helper()
	run, err := os.MkdirTemp("", "rdma") // short: a socket's name has at most 104 bytes
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", filepath.Join(run, "tmp"))
	return filepath.Join(run, "rdmashim")
}

// bear lets a process be silent for so long.
func bear(t *testing.T, d time.Duration) {
	before := silence
	silence = d
	t.Cleanup(func() { silence = before })
}

func serve(t *testing.T, read func() []Device) *Server {
	t.Helper()
	s := must.Get(Serve("a test", read))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func one() []Device { return []Device{example()} }

func TestServeAndRead(t *testing.T) {
	dir := private(t)
	s := serve(t, one)
	require.Equal(t, dir, filepath.Dir(s.path))
	for path, mode := range map[string]os.FileMode{dir: os.ModeDir | 0o700, s.path: os.ModeSocket | 0o600} {
		info := must.Get(os.Lstat(path))(t)
		require.Equal(t, mode, info.Mode())
	}
	for range 2 {
		list, errs := ReadAll(t.Context())
		require.Empty(t, errs)
		want := example()
		want.PID = os.Getpid() // the kernel names the answering process, whatever the answer says
		require.Equal(t, []Device{want}, list)
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NoFileExists(t, s.path)
	list, errs := ReadAll(t.Context())
	require.Empty(t, list)
	require.Empty(t, errs)
}

func TestWithoutARuntimeDirectory(t *testing.T) {
	run := filepath.Dir(private(t))
	require.NoError(t, os.Mkdir(filepath.Join(run, "tmp"), 0o777))
	t.Setenv("XDG_RUNTIME_DIR", "not/absolute")
	s := serve(t, one)
	require.Equal(t, filepath.Join(run, "tmp", fmt.Sprintf("rdmashim-%d", os.Geteuid())), filepath.Dir(s.path))
	t.Setenv("XDG_RUNTIME_DIR", run)
	list, _ := ReadAll(t.Context())
	require.Len(t, list, 1, "who has a run-time directory finds who has none")
}

// A directory that is not the user's alone is not used, nor a name that is too
// long.
func TestServeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"open to others": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) },
		"a file":         func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a link": func(dir string) error {
			return errors.Join(os.Mkdir(dir+"2", 0o700), os.Symlink(dir+"2", dir))
		},
		"missing parent": func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"too long": func(dir string) error {
			long := filepath.Dir(dir) + "/" + strings.Repeat("x", 100)
			return errors.Join(os.Mkdir(long, 0o700), os.Setenv("XDG_RUNTIME_DIR", long))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := private(t)
			require.NoError(t, spoil(dir))
			_, err := Serve("a test", one)
			require.Error(t, err)
			list, errs := ReadAll(t.Context())
			require.Empty(t, list)
			require.Empty(t, errs)
		})
	}
}

// A client that does not read holds up neither other clients for long nor
// Close.
func TestClientThatDoesNotRead(t *testing.T) {
	private(t)
	pairs := make([]QueuePair, 1<<15) // more than the socket's buffer takes
	began := make(chan struct{}, 1)
	s := serve(t, func() []Device {
		began <- struct{}{}
		return []Device{{QueuePairs: pairs}}
	})
	c := must.Get(net.Dial("unix", s.path))(t)
	defer c.Close()
	<-began
	require.NoError(t, s.Close())
	serve(t, one)
	list, errs := ReadAll(t.Context())
	require.Empty(t, errs)
	require.Len(t, list, 1)
}

// A process with many such clients does not keep another one from its answer.
func TestManyClientsThatDoNotRead(t *testing.T) {
	private(t)
	pairs := make([]QueuePair, 1<<12)
	s := serve(t, func() []Device { return []Device{{QueuePairs: pairs}} })
	child.Hold(t, 2*maxClients, "unix", s.path)
	list, errs := ReadAll(t.Context())
	require.Empty(t, errs)
	require.Len(t, list[0].QueuePairs, len(pairs))
}

// pretend listens in the directory for sockets, and answers each client.
func pretend(t *testing.T, dir, name, answer string) {
	t.Helper()
	require.NoError(t, privatefile.MakeDir(dir))
	l := must.Get(net.Listen("unix", filepath.Join(dir, name)))(t)
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(answer))
			c.Close()
		}
	})
}

// A process that lies about which it is, in its answer or by the name of its
// socket, is shown as itself.
func TestLyingProcess(t *testing.T) {
	dir := private(t)
	pretend(t, dir, "1-1.sock", `{"version":1,"pid":1,"devices":[{"name":"soft0","pid":1}]}`+"\n")
	list, errs := ReadAll(t.Context(), 1)
	require.Empty(t, errs)
	require.Equal(t, os.Getpid(), list[0].PID)
	bear(t, time.Millisecond)
	l := must.Get(net.Listen("unix", filepath.Join(dir, "2-1.sock")))(t)
	defer l.Close()
	_, errs = ReadAll(t.Context(), 2)
	var silent *SilentError
	require.ErrorAs(t, errors.Join(errs...), &silent)
	require.Equal(t, os.Getpid(), silent.PID)
}

// An answer that is short, and would take much memory, is refused unread.
func TestSwellingAnswer(t *testing.T) {
	dir := private(t)
	for name, devices := range map[string]string{"1-1": "{},", "1-2": "null,", "1-3": "0,", "1-4": `{"queue_pairs":[{},{}]},`} {
		pretend(t, dir, name+".sock", `{"version":1,"devices":[`+strings.Repeat(devices, maxElements)+"0]}\n")
	}
	list, errs := ReadAll(t.Context())
	require.Empty(t, list)
	require.Len(t, errs, 4)
	for _, err := range errs {
		require.ErrorContains(t, err, "has more than 131072 devices")
	}
	require.Equal(t, 2+1, elements([]byte(`{"a":["\\\"[,",{"b":1,"c":[]}]}`)))
}

// A directory with more names than any number of processes has is read in part,
// and that is said.
func TestManyNames(t *testing.T) {
	dir := private(t)
	serve(t, one)
	for i := range maxSockets {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	_, errs := ReadAll(t.Context())
	require.ErrorContains(t, errors.Join(errs...), "more than 1024 names")
}

// stale leaves the socket of a process that is gone.
func stale(t *testing.T, dir, form string) string {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	require.NoError(t, privatefile.MakeDir(dir))
	path := filepath.Join(dir, fmt.Sprintf(form, cmd.Process.Pid))
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
	return path
}

func TestStaleSockets(t *testing.T) {
	dir := private(t)
	path := stale(t, dir, "%d-1.sock")
	other := filepath.Join(dir, "notes.sock")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	list, errs := ReadAll(t.Context())
	require.Empty(t, list)
	require.Empty(t, errs)
	require.NoFileExists(t, path, "a reader removes it")

	path = stale(t, dir, "%d-2.sock")
	unborn := stale(t, dir, ".%d-3.sock")
	young := filepath.Join(dir, fmt.Sprintf(".%d-4.sock", os.Getpid()))
	require.NoError(t, os.Rename(stale(t, dir, "%d-4.sock"), young))
	serve(t, one)
	require.NoFileExists(t, path, "and so does a server")
	require.NoFileExists(t, unborn, "its process was killed before it had its name")
	Tidy()
	require.FileExists(t, young, "its process is about to listen")
	require.FileExists(t, other, "and what is no socket of ours stays")
}

// A process that ends while it is asked is absent, wherever the question has
// come to.
func TestGoneMeanwhile(t *testing.T) {
	dir := private(t)
	require.NoError(t, privatefile.MakeDir(dir))
	path := filepath.Join(dir, fmt.Sprintf("%d-1.sock", os.Getpid()))
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	defer l.Close()
	for _, before := range []string{"", "half an answer"} {
		c := must.Get(net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"}))(t)
		other := must.Get(l.Accept())(t)
		must.Get(other.Write([]byte(before)))(t)
		require.NoError(t, other.Close())
		_, err := readAnswer(t.Context(), c, 0)
		require.ErrorIs(t, err, errGone)
		require.NoError(t, c.Close())
	}
}

// Processes that do not answer, however many, hold up the reading of the others
// once and are named.
func TestSilentProcesses(t *testing.T) {
	dir := private(t)
	bear(t, 2*time.Second)
	serve(t, one)
	const n = 60
	for i := range n {
		l := must.Get(net.Listen("unix", filepath.Join(dir, fmt.Sprintf("%d-%d.sock", os.Getpid(), i))))(t)
		defer l.Close()
	}
	start := time.Now()
	list, errs := ReadAll(t.Context())
	require.Less(t, time.Since(start), n*silence/2, "side by side")
	require.Len(t, list, 1)
	require.Len(t, errs, n)
	for _, err := range errs {
		var silent *SilentError
		require.ErrorAs(t, err, &silent)
		require.Equal(t, os.Getpid(), silent.PID)
		require.False(t, silent.Stopped)
		require.ErrorContains(t, err, "does not answer within 200ms")
	}
	list, errs = ReadAll(t.Context(), os.Getpid()+1)
	require.Empty(t, list, "another process is not asked")
	require.Empty(t, errs)
}

// A reading that takes longer than the silence allowed is waited for.
func TestSlowAnswer(t *testing.T) {
	private(t)
	bear(t, time.Second)
	serve(t, func() []Device {
		<-time.After(silence * 3 / 2)
		return one()
	})
	list, errs := ReadAll(t.Context())
	require.Empty(t, errs)
	require.Len(t, list, 1)
}

// A caller waits no longer than its context lasts.
func TestNoAnswer(t *testing.T) {
	dir := private(t)
	require.NoError(t, privatefile.MakeDir(dir))
	l := must.Get(net.Listen("unix", filepath.Join(dir, fmt.Sprintf("%d-1.sock", os.Getpid()))))(t)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list, errs := ReadAll(ctx)
	require.Empty(t, list)
	require.Len(t, errs, 1)
}

// Another process's texts carry no control characters to the terminal.
func TestAnswersAreCleaned(t *testing.T) {
	d := example()
	d.Name, d.QueuePairs[0].State = "so\x1b[2Jft", "R\nTS"
	d.Ports[0].Counters = Counters{"sent_pkts": 1, "a b": 1, "\x07": 1, "": 1}
	private(t)
	serve(t, func() []Device { return []Device{d} })
	list, errs := ReadAll(t.Context())
	require.Empty(t, errs)
	require.Equal(t, "so?[2Jft", list[0].Name)
	require.Equal(t, "R?TS", list[0].QueuePairs[0].State)
	require.Equal(t, Counters{"sent_pkts": 1}, list[0].Ports[0].Counters)
}

// The bytes that pass over the socket: this test holds version 1 of the
// protocol.
func TestAnswerJSON(t *testing.T) {
	d := example()
	d.Ports, d.QueuePairs = []Port{}, []QueuePair{}
	text := must.Get(json.Marshal(answer{Version: version, PID: 4711, Process: "demo", Devices: []Device{d}}))(t)
	require.Equal(t, `{"version":1,"pid":4711,"process":"demo","devices":[{"name":"soft0","device":"soft:127.0.0.1","kind":"soft","netdev":"lo","address":"127.0.0.1:4791",`+
		`"pid":4711,"process":"de\"m\\o","time":"2026-11-21T04:00:00Z","ports":[],"queue_pairs":[]}]}`, string(text))
}

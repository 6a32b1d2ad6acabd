package vm

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/vm/guest"
)

// asQEMU makes the test binary behave as a QEMU whose guest is the function
// below, so that everything on the host's side is tested without a machine.
const asQEMU = "RDMASHIM_VM_TEST_AS_QEMU"

func TestMain(m *testing.M) {
	if os.Getenv(asQEMU) != "" {
		fakeQEMU()
		return
	}
	os.Exit(m.Run())
}

// hang never returns: it reads a pipe that stays open. Without cgo the runtime
// ends a program whose goroutines all block elsewhere.
func hang() {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = r.Read(make([]byte, 1))
	runtime.KeepAlive(w)
}

// fakeQEMU is a guest that is a function. Its commands: exit N, signal N, echo
// WORD…, err WORD…, cat, hang, die, log LINE, args, env NAME, peer.
func fakeQEMU() {
	console := os.NewFile(fdConsole, "console")
	fmt.Fprintln(console, "[    0.000001] Linux version 0.0 (fake)")
	mode := os.Getenv(asQEMU)
	switch mode {
	case "mute":
		hang()
	case "refuse":
		fmt.Fprintln(os.Stderr, "qemu: could not load kernel")
		os.Exit(1)
	}
	f := &fakeGuest{conn: guest.NewConn(os.NewFile(fdControl, "control")), console: console, files: map[string]string{}}
	version := guest.Version
	if mode == "old" {
		version--
	}
	f.conn.WriteMessage(guest.KindHello, guest.Hello{Version: version})
	f.serve(mode)
}

type fakeGuest struct {
	conn    *guest.Conn
	console io.Writer
	setup   guest.Setup
	files   map[string]string
}

func (f *fakeGuest) serve(mode string) {
	for {
		kind, payload, err := f.conn.Read()
		if err != nil {
			os.Exit(2)
		}
		var d guest.Done
		switch kind {
		case guest.KindSetup:
			json.Unmarshal(payload, &f.setup)
			d.Steps = []string{"fake"}
			d.Link = f.setup.Link
			f.setup.Env = append(f.setup.Env, "LOAD="+strings.Join(f.setup.Load, ","))
			if mode == "nolink" {
				d.Error = "link rxe0: no such module"
			}
		case guest.KindExec:
			var e guest.Exec
			json.Unmarshal(payload, &e)
			d = f.exec(e)
		case guest.KindPush:
			d = f.push()
		case guest.KindPull:
			f.pull()
		case guest.KindPowerOff:
			os.Exit(0)
		default:
			continue
		}
		f.conn.WriteMessage(guest.KindDone, d)
	}
}

func (f *fakeGuest) exec(e guest.Exec) (d guest.Done) {
	stdout, stderr := f.conn.Writer(guest.KindStdout), f.conn.Writer(guest.KindStderr)
	arg := strings.Join(e.Args[1:], " ")
	switch e.Args[0] {
	case "exit":
		d.Code, _ = strconv.Atoi(arg)
	case "exitnode":
		d.Code = f.setup.Node
	case "signal":
		d.Signal, _ = strconv.Atoi(arg)
	case "echo":
		fmt.Fprintln(stdout, arg)
	case "err":
		fmt.Fprintln(stderr, arg)
	case "file":
		io.WriteString(stdout, f.files[arg])
	case "env":
		for _, v := range append(f.setup.Env, e.Env...) {
			if strings.HasPrefix(v, arg+"=") {
				fmt.Fprintln(stdout, v)
			}
		}
	case "cat":
		for {
			f.conn.Write(guest.KindStdinWant, nil)
			kind, payload, err := f.conn.Read()
			if err != nil || kind != guest.KindStdin {
				break
			}
			stdout.Write(payload)
		}
	case "log":
		f.conn.Write(guest.KindLog, []byte(arg+"\n"))
	case "hang":
		hang()
	case "hangnode":
		if strconv.Itoa(f.setup.Node) == arg {
			hang()
		}
	case "die":
		fmt.Fprintln(f.console, "[    1.000000] Kernel panic - not syncing: fake")
		os.Exit(0)
	case "dienode":
		if strconv.Itoa(f.setup.Node) == arg {
			os.Exit(0)
		}
		hang()
	default:
		d.Error, d.NotFound = "no command "+e.Args[0], true
	}
	return d
}

func (f *fakeGuest) push() (d guest.Done) {
	var archive bytes.Buffer
	for {
		kind, payload, err := f.conn.Read()
		if err != nil || kind != guest.KindData {
			break
		}
		archive.Write(payload)
	}
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			return d
		}
		if err != nil {
			d.Error = err.Error()
			return d
		}
		data, _ := io.ReadAll(r)
		f.files["/"+h.Name] = string(data)
	}
}

func (f *fakeGuest) pull() {
	w := tar.NewWriter(f.conn.Writer(guest.KindStdout))
	for _, name := range []string{"a", "sub/b"} {
		text := fmt.Sprintf("%s of node %d", name, f.setup.Node)
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		io.WriteString(w, text)
	}
	w.Close()
}

// fakeConfig is a configuration whose QEMU is fake, in a mode.
func fakeConfig(t *testing.T, mode string) Config {
	t.Helper()
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	for _, v := range []string{"XDG_CACHE_HOME", "HOME"} { // Linux, others
		t.Setenv(v, cache)
	}
	t.Setenv("TMPDIR", dir)
	t.Setenv(asQEMU, mode)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the fake reports no races of ours
	kernel, image := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "image")
	require.NoError(t, os.WriteFile(kernel, []byte("no kernel"), 0o644))
	require.NoError(t, os.WriteFile(image, fakeImage("0.0-fake"), 0o644))
	return Config{
		QEMU: self, Accel: "tcg", Kernel: kernel, Modules: fakeModules(t, dir), Image: image,
		Log: t.Logf,
	}
}

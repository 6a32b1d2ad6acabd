package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestRunBuilding: a signal ends a run that is still building its libraries,
// which a terminal shows. Scripts stand for the compilers.
func TestRunBuilding(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			bin := t.TempDir()
			gate := filepath.Join(bin, "gate")
			require.NoError(t, unix.Mkfifo(gate, 0o600))
			t.Cleanup(func() { // when the test failed a script waits there
				g, err := os.OpenFile(gate, os.O_RDWR, 0)
				require.NoError(t, err)
				require.NoError(t, g.Close())
			})
			for name, script := range map[string]string{
				"cc": "",
				"go": "printf 'one/package\\nanother\\n'; read word <" + gate + "; exit 1",
			} {
				require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700))
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			t.Setenv("CC", "cc")
			t.Setenv("XDG_CACHE_HOME", filepath.Join(bin, "cache"))
			end, tty := clitest.Terminal(t, 120, 20)
			cmd := tool(t, "run", "--", "true")
			cmd.Stderr = tty
			require.NoError(t, cmd.Start())
			require.NoError(t, tty.Close())
			require.NoError(t, end.SetReadDeadline(time.Now().Add(2*time.Minute)))
			var shown strings.Builder
			for b := make([]byte, 4096); !strings.Contains(shown.String(), "packages compiled (2)"); {
				n, err := end.Read(b)
				require.NoError(t, err, "%s", &shown)
				shown.Write(b[:n])
			}
			require.Regexp(t, "^rdmashim: building the libraries for C programs, once", shown.String())
			// The script reads as soon as the gate has a writer.
			w, err := os.OpenFile(gate, os.O_WRONLY, 0)
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(sig))
			require.Error(t, cmd.Wait())
			require.Equal(t, sig, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
			require.NoError(t, w.Close()) // the build ends
			lock, err := os.OpenFile(filepath.Join(bin, "cache/rdmashim/preload/lock"), os.O_RDWR, 0)
			require.NoError(t, err)
			defer lock.Close()
			require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX)) // when it has gone
		})
	}
}

// TestRunWithoutHome: where the libraries find no place the message names the
// variable that gives them one, and the program runs without them.
func TestRunWithoutHome(t *testing.T) {
	for _, home := range []string{"", "/proc/self", "/nonexistent/../proc"} {
		t.Setenv("HOME", home)
		t.Setenv("XDG_CACHE_HOME", "")
		for way, code := range map[string]int{"--": 0, "--way=library": 1} {
			o := runTool(t, "run", way, "true")
			require.Equal(t, code, o.Code, o.Stderr)
			require.Contains(t, o.Stderr, "set XDG_CACHE_HOME", "HOME=%s", home)
		}
	}
}

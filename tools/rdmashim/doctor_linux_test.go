package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/doctor"
)

func decodeDoctor(t *testing.T, o outcome) (r doctor.Report) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r), "stdout: %s stderr: %s", o.stdout, o.stderr)
	require.Equal(t, map[bool]int{true: 0, false: 1}[r.OK], o.code)
	return r
}

func statuses(r doctor.Report) map[string]doctor.Status {
	m := map[string]doctor.Status{}
	for _, c := range r.Checks {
		m[c.Name] = c.Status
	}
	return m
}

func TestDoctor(t *testing.T) {
	o := runTool(t, "doctor", "-j")
	r := decodeDoctor(t, o)
	require.True(t, r.OK, "%+v", r)
	require.True(t, strings.HasPrefix(r.Device, "soft:127.0.0."), r.Device)
	require.Equal(t, "device soft (the default; RDMASHIM_DEVICE or an argument names another)\n", o.stderr, "what was chosen is said")
	require.Equal(t, doctor.Pass, statuses(r)["loopback"])

	o = runTool(t, "doctor", "sim")
	require.Zero(t, o.code)
	require.Empty(t, o.stderr)
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	require.Len(t, lines, len(doctor.Names())+1)
	for i, name := range doctor.Names() {
		require.Equal(t, name, strings.Fields(lines[i])[1], "the order of the checks")
	}
	require.Contains(t, lines[len(lines)-1], " 0 failed")

	cmd := tool(t, "doctor", "--json")
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=sim")
	o = finish(t, cmd)
	require.True(t, decodeDoctor(t, o).OK)
	require.Equal(t, "device sim (named by RDMASHIM_DEVICE)\n", o.stderr)
}

// TestDoctorFails: a report with a failure is the output, and the status says so.
func TestDoctorFails(t *testing.T) {
	o := runTool(t, "doctor", "-j", "soft:203.0.113.77")
	r := decodeDoctor(t, o)
	require.False(t, r.OK)
	require.Empty(t, o.stderr)
	require.Equal(t, doctor.Fail, statuses(r)["loopback"])
	o = runTool(t, "doctor", "soft:203.0.113.77")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stdout, "FAIL  loopback")
	o = runTool(t, "doctor", "-j", "nosuchdevice7")
	require.False(t, decodeDoctor(t, o).OK)
}

func TestDoctorBadInput(t *testing.T) {
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, `unknown option "x"`, []string{"soft?x=1"}},
		{1, "is not a device name", []string{"a/b"}},
		{1, "not an IP address", []string{"soft:localhost"}},
		{2, "at most 1 argument", []string{"soft", "soft"}},
		{2, "--peer", []string{"soft", "--peer", "example.org"}},
		{2, "--peer", []string{"soft", "--peer", "0.0.0.0"}},
		{2, "unknown flag", []string{"--nosuch"}},
	} {
		o := runTool(t, append([]string{"doctor"}, c.args...)...)
		require.Equal(t, c.code, o.code, "%v", c.args)
		require.Empty(t, o.stdout)
		line, rest, _ := strings.Cut(o.stderr, "\n")
		require.Contains(t, line, c.says)
		require.Equal(t, c.code == 2, strings.HasSuffix(line, "(try 'rdmashim doctor --help')"), line)
		require.Empty(t, rest, "one line")
	}
}

// TestDoctorWithoutRoot: an ordinary user is told what is not seen, and the device
// works.
func TestDoctorWithoutRoot(t *testing.T) {
	cmd := tool(t, "doctor", "-j", "soft")
	if os.Getuid() == 0 {
		dir, err := os.MkdirTemp("", "rdmashim-user-")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		require.NoError(t, os.Chmod(dir, 0o755))
		cmd.Path = filepath.Join(dir, "rdmashim")
		copyFile(t, mustExecutable(t), cmd.Path)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	}
	r := decodeDoctor(t, finish(t, cmd))
	require.True(t, r.OK, "%+v", r)
	got := statuses(r)
	require.Equal(t, doctor.Pass, got["loopback"])
	require.Contains(t, []doctor.Status{doctor.Skip, doctor.Pass}, got["firewall"]) // Pass where nf_tables is not there
	require.Equal(t, doctor.Pass, got["netdev"])
}

//go:build amd64 || arm64

package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// overVerbs has UCX use the soft device and nothing else. Its datagrams, by
// which RC queue pairs meet, come from rxe only without the check of the route
// header, since rxe's completions do not say which header it is.
func overVerbs(t *testing.T) {
	for name, value := range map[string]string{
		"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "rxe0:1", "UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_WARN_UNUSED_ENV_VARS": "n",
	} {
		t.Setenv(name, value)
	}
}

// onUDP keeps connections between devices of a machine from shared memory.
func onUDP(t *testing.T) { t.Setenv("RDMASHIM_SHM", "off") }

// TestUCX: ucx_perftest over RC queue pairs, and over UD ones alone.
func TestUCX(t *testing.T) {
	needs(t, "ucx_perftest")
	overVerbs(t)
	for _, c := range some([]struct {
		name, options, line string
		set                 func(*testing.T)
	}{
		{"latency", "", "-t tag_lat -n 200", nil},
		{"latency, UDP", "", "-t tag_lat -n 200", onUDP},
		{"bandwidth", "", "-t tag_bw -s 100000 -n 50", nil},
		{"bandwidth, loss", "?loss=1%&seed=3", "-t tag_bw -s 100000 -n 50", nil},
		{"WRITE, UDP", "", "-t ucp_put_bw -s 1000000 -n 20", onUDP},
		{"READ", "", "-t ucp_get -s 65536 -n 50", nil},
		{"datagrams", "", "-t am_lat -x ud_verbs -d rxe0:1 -n 200", func(t *testing.T) { t.Setenv("UCX_TLS", "ud_v") }},
	}, 1) {
		t.Run(c.name, func(t *testing.T) {
			if c.set != nil {
				c.set(t)
			}
			port := freePort(t)
			args := append([]string{"ucx_perftest", "-p", port, "-w", "10"}, strings.Fields(c.line)...)
			ready := func(p *process) { p.listens(port) }
			require.Contains(t, pair(t, c.options, ready, args, append(args, "127.0.0.1")), "Final:")
		})
	}
}

// openMPI has Open MPI use UCX and nothing else.
const openMPI = "mpirun.openmpi --oversubscribe --mca pml ucx --mca osc ucx --mca btl ^openib"

// mpirun runs ranks of a program, each on a device of its own, and returns what
// they say.
func mpirun(t *testing.T, launcher, program, options string, ranks int) string {
	t.Helper()
	overVerbs(t)
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	args := strings.Fields(launcher)
	var env []string
	for rank := range ranks {
		device, _ := newDevice()
		if rank > 0 {
			args = append(args, ":")
		}
		one := command(t, device+options, program)
		args, env = append(append(args, "-np", "1"), one.Args...), one.Env
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = env
	cmd.WaitDelay = patience
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestMPI: two ranks of Open MPI exchange a megabyte over UCX.
func TestMPI(t *testing.T) {
	needs(t, "mpirun.openmpi", "mpicc.openmpi")
	program := compileBy(t, "mpicc.openmpi", "megabyte.c")
	for _, c := range some([]struct {
		name, options string
		set           func(*testing.T)
	}{
		{"shared memory", "", func(*testing.T) {}},
		{"UDP", "", onUDP},
		{"loss", "?loss=1%&seed=3", onUDP},
	}, 1) {
		t.Run(c.name, func(t *testing.T) {
			c.set(t)
			out := mpirun(t, openMPI, program, c.options, 2)
			require.Contains(t, out, "rank 0 has the other's megabyte")
			require.Contains(t, out, "rank 1 has the other's megabyte")
		})
	}
}

// TestRanks: collectives and one-sided calls of Open MPI and MPICH, both over
// UCX: MPICH takes ranks of a host for neighbours in memory unless told not to.
func TestRanks(t *testing.T) {
	amount.Rest(t)
	t.Setenv("MPIR_CVAR_NOLOCAL", "1")
	for _, c := range []struct{ name, compiler, launcher string }{
		{"Open MPI", "mpicc.openmpi", openMPI},
		{"MPICH", "mpicc.mpich", "mpirun.mpich"},
	} {
		for _, ranks := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s, %d", c.name, ranks), func(t *testing.T) {
				needs(t, c.compiler)
				out := mpirun(t, c.launcher, compileBy(t, c.compiler, "ranks.c"), "", ranks)
				require.Equal(t, ranks, strings.Count(out, fmt.Sprintf("of %d has it all", ranks)), "%s", out)
			})
		}
	}
}

// TestLibfabric: fi_pingpong over the verbs provider, by RC queue pairs of
// rdma_cm and by datagrams. The provider wants addresses of an interface other
// than lo: a network namespace has a pair of veths.
func TestLibfabric(t *testing.T) {
	needs(t, "fi_pingpong", "ip")
	libs, err := libraries()
	require.NoError(t, err)
	t.Setenv(envBuilt, libs)
	if !netns.Own(t) {
		return
	}
	for _, line := range []string{
		"link add v0 type veth peer name v1", "address add 10.1.0.1/24 dev v0", "address add 10.1.0.2/24 dev v0",
		"link set v0 up", "link set v1 up",
	} {
		out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", line, out)
	}
	for _, c := range some([]struct {
		line, options string
		set           func(*testing.T)
	}{
		{"-p verbs -e msg -I 100", "", func(*testing.T) {}},
		{"-p verbs -e msg -I 50", "", onUDP},
		{"-p verbs -e msg -I 60", "?loss=1%&seed=3", onUDP},
		{"-p verbs -e dgram -I 100", "", func(*testing.T) {}},
		{"-p verbs;ofi_rxd -e rdm -S 4096", "", func(*testing.T) {}},
	}, 1) {
		t.Run(c.line+c.options, func(t *testing.T) {
			c.set(t)
			port := freePort(t)
			args := append([]string{"fi_pingpong", "-c"}, strings.Fields(c.line)...) // -c looks at every byte
			server := start(t, "soft:10.1.0.1"+c.options, append(args, "-B", port)...)
			server.listens(port)
			client := start(t, "soft:10.1.0.2"+c.options, append(args, "-P", port, "10.1.0.1")...)
			require.Contains(t, client.ends(0), "Mxfers/sec")
			server.ends(0)
		})
	}
}

// TestDAPL: uDAPL's own test, over RC queue pairs of rdma_cm.
func TestDAPL(t *testing.T) {
	amount.Rest(t)
	needs(t, "dtest")
	here, own := newDevice()
	there, addr := newDevice()
	end := func(device, addr, options string) func() *process {
		conf := filepath.Join(t.TempDir(), "dat.conf")
		line := fmt.Sprintf("soft u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 %q \"\"\n", addr+" 0")
		require.NoError(t, os.WriteFile(conf, []byte(line), 0o600))
		return func() *process {
			return startLine(t, device, "DAT_OVERRIDE="+conf+" dtest -P soft -b 65536 -B 10"+options)
		}
	}
	require.Contains(t, meet(t, nil, end(there, addr, ""), end(here, own, " -h "+addr)), "PASSED")
}

// TestRPMA: librpma writes, flushes, reads and sends over RC queue pairs of
// rdma_cm, where packets are lost.
func TestRPMA(t *testing.T) {
	amount.Rest(t)
	needs(t)
	header(t, "/usr/include/librpma.h", "librpma-dev")
	program := compile(t, "rpma", "-lrpma", "-libverbs")
	onUDP(t)
	here, _ := newDevice()
	there, addr := newDevice()
	port := freePort(t)
	end := func(device string, more ...string) func() *process {
		return func() *process {
			return start(t, device+"?loss=1%&seed=3", append([]string{program, addr, port}, more...)...)
		}
	}
	require.Contains(t, meet(t, nil, end(there), end(here, "client")), "the bytes are right")
}

// TestGloo: ranks of gloo sum a mebibyte over its verbs transport, whose queue
// pairs they bring up by a directory.
func TestGloo(t *testing.T) {
	amount.Rest(t)
	needs(t, "g++")
	header(t, "/usr/include/gloo/rendezvous/context.h", "libgloo-dev")
	program := compileBy(t, "g++", "gloo.cc", "-lgloo", "-libverbs", "-pthread")
	for _, ranks := range []int{2, 4} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			var all []*process
			directory := t.TempDir()
			for rank := range ranks {
				device, _ := newDevice()
				all = append(all, start(t, device, program, fmt.Sprint(rank), fmt.Sprint(ranks), directory))
			}
			for _, p := range all {
				require.Contains(t, p.ends(0), "has the sum")
			}
		})
	}
}

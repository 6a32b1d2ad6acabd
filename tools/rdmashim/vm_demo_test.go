package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestVMDemoQUIC runs one program over rxe, TCP and real QUIC between two
// guests.
func TestVMDemoQUIC(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guests need KVM or QEMU on Linux; run it there")
	}
	amount.Rest(t)
	o := finish(t, tool(t, "vm", "demo", "--quic", "--image", vmtest.Config(t).Image, "--boot-timeout", "5m"))
	require.Zero(t, o.Code, "stdout: %s\nstderr: %s", o.Stdout, o.Stderr)
	require.Regexp(t, `node1: quic client: rxe0: .* rxe0, queue pair \d+ to \d+: 4 streams .* every byte right`, o.Stdout)
	require.Regexp(t, `node1: quic client: udp: .* every byte right`, o.Stdout)
	require.Regexp(t, `node1: quic client: +sent: ACK +0 +0 +[1-9]`, o.Stdout)
	require.Regexp(t, `vm demo: the same streams over every transport, \d+ packets of RDMA`, o.Stdout)
}

// TestVMDemo runs the samples between two guests, on rxe in both and with the
// soft RNIC in one.
func TestVMDemo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guests need KVM or QEMU on Linux; run it there")
	}
	image := vmtest.Config(t).Image
	for _, mixed := range amount.Some([]string{"--mixed", "--mixed=false"}, 2) {
		t.Run(mixed, func(t *testing.T) {
			dir := t.TempDir()
			o := finish(t, tool(t, "vm", "demo", "--image", image, "--boot-timeout", "5m", "--out", dir, mixed))
			require.Zero(t, o.Code, "stdout: %s\nstderr: %s", o.Stdout, o.Stderr)
			for _, name := range []string{"write-read", "write-imm"} {
				for _, side := range []string{"node0: " + name + " server", "node1: " + name + " client"} {
					require.Contains(t, o.Stdout, side+": queue pair: RESET → INIT → RTR → RTS")
				}
			}
			for _, want := range []string{"CM ConnectRequest", "CM ConnectReply", "CM ReadyToUse", "CM DisconnectRequest",
				"RC RDMA_WRITE_ONLY ", "RC RDMA_READ_REQUEST", "RC RDMA_WRITE_ONLY_WITH_IMMEDIATE"} {
				require.Regexp(t, "(?m)^capture: .*"+want, o.Stdout)
			}
			require.Contains(t, o.Stdout, "every byte right at both ends")
		})
	}
}

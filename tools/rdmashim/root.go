package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/top"
)

// newRoot builds the command tree anew, so that tests share no flag state.
func newRoot() *cobra.Command {
	root := cli.NewRoot("rdmashim")
	root.Short = "RDMA on any Linux machine, with or without an RDMA device"
	root.Long = `rdmashim moves memory between processes by RDMA, on a soft RNIC in user space
(the default: no root, no kernel module) or on a kernel device.

Start with:  rdmashim demo

exit status: 0 done; 1 failed, with one line on standard error; 2 wrong usage`
	root.Example = `  rdmashim demo
  rdmashim doctor
  rdmashim explain RETRY_EXC_ERR`
	root.AddCommand(dump.Command(), newDemo(), newServer(), newClient(), newDevices(), newABI(), newExplain(), newSample(), newPing(), newVersion(), newPerf(), newDoctor())
	root.AddCommand(newTop(top.Here), newStats(top.Here))
	root.AddCommand(newRDMA(netlinkmgr.Open)...)
	root.AddCommand(newVM(), newCompletion(), newMan())
	completeNames(root)
	return root
}

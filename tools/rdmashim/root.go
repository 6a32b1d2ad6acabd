package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/bridge"
	"github.com/rdmashim/rdmashim/tools/rdmashim/capi"
	"github.com/rdmashim/rdmashim/tools/rdmashim/demo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/doctor"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
	"github.com/rdmashim/rdmashim/tools/rdmashim/kernel"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/tools/rdmashim/rdma"
	cprogram "github.com/rdmashim/rdmashim/tools/rdmashim/run"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/tools/rdmashim/top"
	"github.com/rdmashim/rdmashim/tools/rdmashim/vm"
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
	root.AddCommand(newDevices(), newABI(), dump.Command(), explain.Command(), newVersion(), doctor.Command())
	root.AddCommand(kernel.Command(), kernel.CDICommand(), cprogram.Command(), capi.Command())
	root.AddCommand(demo.Command(), demo.ServerCommand(), demo.ClientCommand(), sample.Command(), sample.PingCommand())
	root.AddCommand(echo.Command(), stream.ProxyCommand(), bridge.Command())
	root.AddCommand(perf.Command(), top.Command(top.Here), top.StatsCommand(top.Here))
	root.AddCommand(rdma.Commands(netlinkmgr.Open)...)
	root.AddCommand(vm.Command(), newCompletion())
	completeNames(root)
	return root
}

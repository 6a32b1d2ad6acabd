package guest

import (
	"context"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/cprograms"
)

// cPrograms are those that the tests run.
var cPrograms = []string{
	"ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong",
	"ib_write_bw", "ib_read_lat", "ib_send_bw", "rping", "ucmatose", "udaddy", "mckey", "rcopy", "rstream",
}

// programs returns the files to add to the guest for the C programs.
func programs(ctx context.Context) ([]vm.Add, error) { return cprograms.Adds(ctx, cPrograms...) }

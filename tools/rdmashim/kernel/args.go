package kernel

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// args are a command's arguments, read as the table names them: QP is a queue
// pair, MR a region, REMOTE and RKEY a number or what a region's name stands
// for, other words in capitals that count something numbers, and the rest is
// text.
type args struct {
	pairs []*pair
	mr    *region
	n     []uint64
	text  []string
}

// number is the i-th number, or otherwise if that was left out.
func (a *args) number(i int, otherwise uint64) uint64 {
	if i < len(a.n) {
		return a.n[i]
	}
	return otherwise
}

// read reads the words behind a command.
func (c *console) read(cmd *command, line []string) (*args, error) {
	kinds := strings.Fields(cmd.args)
	least := len(kinds) - strings.Count(cmd.args, "[")
	rest := strings.Contains(cmd.args, "...")
	if len(line) < least || len(line) > len(kinds) && !rest {
		return nil, fmt.Errorf("usage: %s, for example: %s", cmd.usage(), cmd.example)
	}
	a := &args{}
	for i, word := range line {
		kind := kinds[min(i, len(kinds)-1)]
		if err := c.readOne(a, strings.Trim(kind, "[]"), word); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (c *console) readOne(a *args, kind, word string) (err error) {
	var n uint64
	switch r := c.regions[word]; {
	case kind == "QP" && c.pairs[word] == nil:
		err = fmt.Errorf("there is no queue pair %s; create_qp makes one: %w", word, syscall.EBADF)
	case kind == "QP":
		a.pairs = append(a.pairs, c.pairs[word])
	case kind == "MR" && r == nil:
		err = fmt.Errorf("there is no region %s; reg_mr makes one: %w", word, syscall.EBADF)
	case kind == "MR":
		a.mr = r
	case kind == "REMOTE" && r != nil, kind == "RKEY" && r != nil:
		var info uapi.MRInfo
		info, err = r.device.QueryMR(r.mr)
		if n = info.Addr; kind == "RKEY" {
			n = uint64(info.RKey)
		}
		a.n = append(a.n, n)
	case strings.Contains(" REMOTE RKEY OFFSET BYTES SENDS RECEIVES COUNT ", " "+kind+" "):
		bits := 64
		if kind != "REMOTE" {
			bits = 32
		}
		if n, err = strconv.ParseUint(word, 0, bits); err != nil {
			err = fmt.Errorf("%s is a number of %d bits, such as 4096 or 0x1000, and not %q", kind, bits, word)
		}
		a.n = append(a.n, n)
	default:
		a.text = append(a.text, word)
	}
	return err
}

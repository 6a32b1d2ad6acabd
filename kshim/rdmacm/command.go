package rdmacm

import "github.com/rdmashim/rdmashim/kshim/abi"

// room is the size of a request's or a response's buffer, in bytes: the largest
// is GET_EVENT's answer.
const room = 512

// scratch is a command's memory: the request, and pinned room for bytes that
// the kernel writes back or reads beside it.
type scratch struct {
	cmd     []byte
	mem     []byte
	addr    uint64
	release func()
}

// take gives scratch memory. Commands of different ids do not wait for each
// other: some sleep in the kernel.
func (c *Channel) take() *scratch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	s := &scratch{cmd: make([]byte, room), mem: make([]byte, room)}
	s.addr, s.release = c.file.Pin(s.mem)
	return s
}

func (c *Channel) give(s *scratch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, s)
}

// request is a command: its structure, and if it has an answer, the place of
// its address and the decoder. The schema has the sizes.
type request struct {
	cmd      abi.UCMCommand
	in       abi.Struct
	response *uint64
	out      abi.Struct
}

// do gives one command. Close waits for it.
func (c *Channel) do(r *request) error {
	c.ctl.RLock()
	defer c.ctl.RUnlock()
	if c.closed {
		return errClosed
	}
	s := c.take()
	defer c.give(s)
	return c.write(s, r)
}

// write is a command with memory. Its error does not name the command: callers
// name their act.
func (c *Channel) write(s *scratch, r *request) error {
	row := abi.LookupUCM(r.cmd)
	size, room := row.Request.Size, row.Response.Size
	if r.response != nil {
		*r.response = s.addr
		clear(s.mem[:room])
	}
	n := abi.UCMHdrSize + size
	(&abi.UCMHdr{Cmd: r.cmd, In: uint16(size), Out: uint16(room)}).Put(s.cmd)
	r.in.Put(s.cmd[abi.UCMHdrSize:])
	wrote, err := c.file.Write(s.cmd[:n])
	if err == nil && wrote != n {
		err = errShort
	}
	if err == nil && r.out != nil {
		err = r.out.Parse(s.mem[:room])
	}
	if err != nil {
		return bare(err)
	}
	return nil
}

func (c *Channel) destroyID(id uint32) error {
	req := abi.UCMDestroyID{ID: id}
	return c.do(&request{abi.UCMCmdDestroyID, &req, &req.Response, &abi.UCMDestroyIDResp{}})
}

// command gives one that has no answer.
func (c *Channel) command(cmd abi.UCMCommand, in abi.Struct) error {
	return c.do(&request{cmd: cmd, in: in})
}

func (c *Channel) disconnect(id uint32) error {
	return c.command(abi.UCMCmdDisconnect, &abi.UCMDisconnect{ID: id})
}

func (c *Channel) reject(id uint32, why abi.UCMRejReason, private []byte) error {
	req := abi.UCMReject{ID: id, Reason: uint8(why), PrivateDataLen: uint8(len(private))}
	copy(req.PrivateData[:], private)
	return c.command(abi.UCMCmdReject, &req)
}

// setOption passes a value beside the command, in the pinned memory.
func (c *Channel) setOption(id uint32, option abi.UCMOption, value []byte) error {
	c.ctl.RLock()
	defer c.ctl.RUnlock()
	if c.closed {
		return errClosed
	}
	s := c.take()
	defer c.give(s)
	req := abi.UCMSetOption{OptVal: s.addr, ID: id, Level: abi.UCMLevelID, OptName: option, OptLen: uint32(copy(s.mem, value))}
	return c.write(s, &request{cmd: abi.UCMCmdSetOption, in: &req})
}

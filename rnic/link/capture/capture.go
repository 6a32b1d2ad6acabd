package capture

import "github.com/rdmashim/rdmashim/rnic/link"

// Options are Wrap's.
type Options struct {
	// Name is the interface's name in the file, such as the device's.
	Name string
	// Failed, if not nil, is called once, by a goroutine of the capture, when
	// the file can no longer be written.
	Failed func(error)
}

// captured is a link whose datagrams go into a file.
type captured struct {
	link.Link
	file *file
}

// Wrap returns l with all its datagrams captured into a pcapng file at path,
// which ends when the link is closed. Wrap precedes every other use of l; on an
// error l is as it was.
//
// The file replaces one that is there. When it cannot be opened the error Is
// the system's; EBUSY when another link is being captured into it. Later errors
// of the file do not touch the link: its counter pcap_drop counts the packets
// that are not in the file, pcap_pkts all that were seen.
func Wrap(l link.Link, path string, o Options) (link.Link, error) {
	f, err := create(path, o.Name, "rdmashim at "+l.Caps().Local.String(), o.Failed)
	if err != nil {
		return nil, err
	}
	l.SetTap(f)
	return &captured{l, f}, nil
}

// Counters adds the capture's counters to the link's.
func (c *captured) Counters(dst []link.Counter) []link.Counter {
	return c.file.counters(c.Link.Counters(dst))
}

// Close closes the link first, so that nothing is sent any more that the file
// misses.
func (c *captured) Close() error {
	err := c.Link.Close()
	c.file.close()
	return err
}

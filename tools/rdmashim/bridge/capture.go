package bridge

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// capture is a pcapng file of the frames that leave, by the interface of each.
type capture struct {
	file *os.File

	mu  sync.Mutex
	w   *pcapgo.NgWriter // guarded by mu
	err error            // guarded by mu: the first of a write
}

// create begins a file, which replaces one that is there.
func create(path string, netdevs [2]string) (*capture, error) {
	f, err := privatefile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	c := &capture{file: f}
	section := pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "rdmashim " + cli.Version}
	at := pcapgo.NgInterface{OS: runtime.GOOS, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9, Name: netdevs[0]}
	c.w, err = pcapgo.NewNgWriterInterface(f, at, pcapgo.NgWriterOptions{SectionInfo: section})
	if err == nil {
		at.Name = netdevs[1]
		_, err = c.w.AddInterface(at)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// left adds a frame that left by an interface, 0 or 1.
func (c *capture) left(by int, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	info := gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: len(frame), Length: len(frame), InterfaceIndex: by}
	outbound := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}}
	c.err = c.w.WritePacketWithOptions(info, frame, outbound)
}

// flush writes what has been added.
func (c *capture) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.err, c.w.Flush())
}

func (c *capture) close() error { return errors.Join(c.flush(), c.file.Close()) }

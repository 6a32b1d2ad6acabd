package dump

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
)

// pcapngFile is the pcapng file that --write makes.
type pcapngFile struct {
	name       string
	out        io.Writer
	closer     io.Closer
	w          *pcapgo.NgWriter
	interfaces map[netInterface]int
}

// netInterface is an interface in pcapng's sense: each has one link type.
type netInterface struct {
	name     string
	linkType int
}

// createPcapng begins a file, which replaces one that is there but not the one
// that is being read.
func createPcapng(path string, stdout io.Writer, from *os.File) (*pcapngFile, error) {
	d := &pcapngFile{name: path, out: stdout, interfaces: map[netInterface]int{}}
	if path == "-" {
		d.name = "standard output"
		return d, nil
	}
	f, err := privatefile.Open(path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && from != nil {
		if same, e := from.Stat(); e == nil && os.SameFile(info, same) {
			err = fmt.Errorf("%s is the file that is being read: write into another", path)
		}
	}
	if err == nil && info.Mode().IsRegular() {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	d.out, d.closer = f, f
	return d, nil
}

// at returns the number of an interface in the file.
func (d *pcapngFile) at(i netInterface) (n int, err error) {
	if n, ok := d.interfaces[i]; ok {
		return n, nil
	}
	ng := pcapgo.NgInterface{Name: i.name, OS: runtime.GOOS, LinkType: layers.LinkType(i.linkType), TimestampResolution: 9}
	if d.w == nil {
		o := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "rdmashim " + cli.Version}}
		d.w, err = pcapgo.NewNgWriterInterface(d.out, ng, o)
	} else {
		n, err = d.w.AddInterface(ng)
	}
	if err == nil {
		d.interfaces[i] = n
	}
	return n, err
}

// write adds a packet as it was captured; with comments, what is to be said of
// it.
func (d *pcapngFile) write(p *dissect.Packet, remarks []flow.Remark, comments, flush bool) error {
	rec := &p.Record
	n, err := d.at(netInterface{rec.Interface, rec.LinkType})
	if err != nil {
		return err
	}
	var o pcapgo.NgPacketOptions
	switch rec.Direction {
	case dissect.Inbound:
		o.Flags = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	case dissect.Outbound:
		o.Flags = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}
	}
	for _, m := range remarks {
		if comments {
			o.Comments = append(o.Comments, string(m.Kind)+": "+m.Text)
		}
	}
	info := gopacket.CaptureInfo{Timestamp: rec.Time, CaptureLength: len(rec.Data), Length: max(rec.Length, len(rec.Data)), InterfaceIndex: n}
	if err := d.w.WritePacketWithOptions(info, rec.Data, o); err != nil || !flush {
		return err
	}
	return d.w.Flush()
}

// close ends the file. One without packets is a capture too.
func (d *pcapngFile) close() error {
	const linkEthernet = 1
	var err error
	if d.w == nil {
		_, err = d.at(netInterface{"", linkEthernet})
	}
	if err == nil {
		err = d.w.Flush()
	}
	if d.closer != nil {
		err = cmp.Or(err, d.closer.Close())
	}
	return err
}

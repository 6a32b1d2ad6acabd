package rpc

import (
	"context"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// callInfo holds what a call's options ask for.
type callInfo struct {
	codec        codec
	waitForReady bool
	maxReceive   int // bytes of a message
	maxSend      int
	credentials  []credentials.PerRPCCredentials
	headers      []*metadata.MD
	trailers     []*metadata.MD
	peers        []*peer.Peer
	onFinish     []func(error)
}

// set reads options of grpc's. Errors: UNIMPLEMENTED for an option that has no
// meaning here; the text says which, and what to do.
func (i *callInfo) set(options []grpc.CallOption) (err error) {
	i.maxReceive, i.maxSend = defaultMaxReceive, defaultMaxSend
	for _, o := range options {
		if optionErr := i.apply(o); err == nil {
			err = optionErr // the rest is applied, too: OnFinish is called
		}
	}
	return err
}

func (i *callInfo) apply(option grpc.CallOption) (err error) {
	switch o := option.(type) {
	case grpc.EmptyCallOption, grpc.StaticMethodCallOption, grpc.MaxRetryRPCBufferSizeCallOption:
		// Calls are repeated by the session, which keeps no copy of a request.
	case grpc.HeaderCallOption:
		i.headers = append(i.headers, o.HeaderAddr)
	case grpc.TrailerCallOption:
		i.trailers = append(i.trailers, o.TrailerAddr)
	case grpc.PeerCallOption:
		i.peers = append(i.peers, o.PeerAddr)
	case grpc.FailFastCallOption:
		i.waitForReady = !o.FailFast
	case grpc.OnFinishCallOption:
		i.onFinish = append(i.onFinish, o.OnFinish)
	case grpc.MaxRecvMsgSizeCallOption:
		i.maxReceive = o.MaxRecvMsgSize
	case grpc.MaxSendMsgSizeCallOption:
		i.maxSend = o.MaxSendMsgSize
	case grpc.PerRPCCredsCallOption:
		if o.Creds.RequireTransportSecurity() {
			return status.Error(codes.Unauthenticated, "rpc: the call's credentials require transport security, which RDMA has not; use grpc-go with TLS over rdmanet")
		}
		i.credentials = append(i.credentials, o.Creds)
	case grpc.ContentSubtypeCallOption:
		i.codec, err = codecOf(o.ContentSubtype)
	case grpc.ForceCodecCallOption:
		i.codec = codec{o.Codec.Name(), oldCodec{o.Codec}}
	case grpc.ForceCodecV2CallOption:
		i.codec = codec{o.CodecV2.Name(), o.CodecV2}
	case grpc.CompressorCallOption:
		if o.CompressorType != "" && o.CompressorType != "identity" {
			return status.Errorf(codes.Unimplemented, "rpc: compressor %q: messages are not compressed here; leave grpc.UseCompressor out", o.CompressorType)
		}
	case grpc.AuthorityOverrideCallOption:
		return status.Errorf(codes.Unimplemented, "rpc: authority %q: there are no virtual hosts here; leave grpc.CallAuthority out", o.Authority)
	default:
		return status.Errorf(codes.Unimplemented, "rpc: option %T has no meaning here; leave it out", option)
	}
	return err
}

// outgoing is the metadata that a call sends: the context's and that of the
// credentials.
func (i *callInfo) outgoing(ctx context.Context, target, method string) (metadata.MD, error) {
	md, _ := metadata.FromOutgoingContext(ctx)
	for _, c := range i.credentials {
		audience := url.URL{Scheme: "rdma", Host: target, Path: method}
		more, err := c.GetRequestMetadata(ctx, audience.String())
		if err != nil {
			if s, ok := status.FromError(err); ok {
				return nil, s.Err()
			}
			return nil, status.Errorf(codes.Unauthenticated, "rpc: the call's credentials: %v", err)
		}
		if md == nil {
			md = metadata.MD{}
		}
		for key, value := range more {
			md.Append(key, value)
		}
	}
	return md, nil
}

// begun, headed and ended fill what the caller asked for.
func (i *callInfo) begun(c *ClientConn) {
	for _, to := range i.peers {
		local, remote := c.addrs()
		*to = peer.Peer{Addr: remote, LocalAddr: local}
	}
}

func (i *callInfo) headed(md metadata.MD) {
	for _, to := range i.headers {
		*to = md.Copy()
	}
}

func (i *callInfo) ended(trailers metadata.MD, err error) {
	for _, to := range i.trailers {
		*to = trailers.Copy()
	}
	for _, f := range i.onFinish {
		f(err)
	}
}

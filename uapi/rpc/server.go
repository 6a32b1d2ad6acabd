package rpc

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// ServerConfig says how a Server answers. The zero value is good.
type ServerConfig struct {
	// UnaryInterceptors and StreamInterceptors stand around each handler, the
	// first outermost.
	UnaryInterceptors  []grpc.UnaryServerInterceptor
	StreamInterceptors []grpc.StreamServerInterceptor
	// StatsHandlers are told of each call and stream.
	StatsHandlers []stats.Handler
	// MaxReceive and MaxSend bound a message, in bytes: 4 MiB and 64 MiB
	// unless they are set.
	MaxReceive, MaxSend int
	// Session has the bounds of sessions; its handlers are this server's.
	Session session.ServerConfig
}

// Server calls the handlers of registered services: it is a
// grpc.ServiceRegistrar, which services are registered with as with a
// grpc.Server, before Serve. One implementation may be registered with both.
type Server struct {
	config   ServerConfig
	services registry
	unary    grpc.UnaryServerInterceptor
	stream   grpc.StreamServerInterceptor

	once     sync.Once // sets the fields below
	sessions *session.Server
	err      error
}

var _ grpc.ServiceRegistrar = (*Server)(nil)

// NewServer makes a server without services.
func NewServer(config ServerConfig) *Server {
	config.MaxReceive = cmp.Or(config.MaxReceive, defaultMaxReceive)
	config.MaxSend = cmp.Or(config.MaxSend, defaultMaxSend)
	return &Server{
		config: config, services: registry{},
		unary:  chain(config.UnaryInterceptors, joinUnaryServer),
		stream: chain(config.StreamInterceptors, joinStreamServer),
	}
}

// RegisterService adds a service, as generated code calls it. It panics, as
// grpc-go ends the process, if the name is registered already or impl lacks
// methods.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if err := s.services.register(desc, impl); err != nil {
		panic(err)
	}
}

// GetServiceInfo describes the registered services, by name; reflection asks
// for it.
func (s *Server) GetServiceInfo() map[string]grpc.ServiceInfo {
	infos := map[string]grpc.ServiceInfo{}
	for name, service := range s.services {
		info := service.info
		info.Methods = slices.Clone(info.Methods)
		infos[name] = info
	}
	return infos
}

// call runs a unary handler. The answer has no body if the status is not OK.
func (s *Server) call(ctx context.Context, r *session.Request) session.Reply {
	x := &exchange{method: r.Method, request: r, memory: r.Memory()}
	ctx, err := s.arrive(ctx, x, r.Metadata, &grpc.StreamDesc{})
	if err != nil {
		return s.answered(x, nil, err)
	}
	service, name := s.services.find(r.Method)
	if service == nil || service.methods[name] == nil {
		return s.answered(x, nil, status.Error(codes.Unimplemented, s.services.unknown(r.Method)))
	}
	reply, err := service.methods[name].Handler(service.impl, ctx, func(m any) error { return x.decode(m, s.config.MaxReceive) }, s.unary)
	if err != nil {
		return s.answered(x, nil, err)
	}
	x.reply, err = x.codec.marshal(reply, s.config.MaxSend)
	return s.answered(x, reply, err)
}

// answered ends a call.
func (s *Server) answered(x *exchange, reply any, err error) session.Reply {
	_, _ = x.takeHeaders()
	if err == nil {
		x.watch.outPayload(reply, x.reply.size)
	}
	r := x.end(err)
	if r.Status.Code == 0 {
		r.Body = lastBody{&x.reply}
	}
	return r
}

// lastBody is a body that is sent once, and then gives its memory back.
type lastBody struct{ *body }

func (b lastBody) Close() error {
	b.free()
	return nil
}

// open runs a stream's handler, which may be a unary method's.
func (s *Server) open(ctx context.Context, stream *session.ServerStream) session.Reply {
	service, name := s.services.find(stream.Method)
	desc, handler := &grpc.StreamDesc{}, grpc.StreamHandler(nil)
	if service != nil {
		if d := service.streams[name]; d != nil {
			desc, handler = d, d.Handler
		} else if m := service.methods[name]; m != nil {
			handler = s.asStream(m)
		}
	}
	x := &exchange{method: stream.Method, stream: stream, memory: stream.Memory()}
	ctx, err := s.arrive(ctx, x, stream.Metadata, desc)
	switch {
	case err != nil:
	case handler == nil:
		err = status.Error(codes.Unimplemented, s.services.unknown(stream.Method))
	default:
		ss := &serverStream{exchange: x, ctx: ctx, maxReceive: s.config.MaxReceive, maxSend: s.config.MaxSend}
		if s.stream == nil || service.methods[name] != nil {
			err = handler(service.impl, ss)
		} else {
			info := &grpc.StreamServerInfo{FullMethod: stream.Method, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
			err = s.stream(service.impl, ss, info, handler)
		}
	}
	return x.end(err)
}

// asStream lets a client that knows streams alone, such as a proxy, make a
// unary call.
func (s *Server) asStream(m *grpc.MethodDesc) grpc.StreamHandler {
	return func(impl any, ss grpc.ServerStream) error {
		reply, err := m.Handler(impl, ss.Context(), ss.RecvMsg, s.unary)
		if err != nil {
			return err
		}
		return ss.SendMsg(reply)
	}
}

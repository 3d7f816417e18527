package api

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// messagesField is the number of the field "messages" in every unary response of the machine API, and that of the field
// "metadata" in each of those messages and in every message of a stream.
const messagesField = protowire.Number(1)

// signReply adds to a node's encoded answer which node it came from. A streamed message carries its metadata itself; a
// unary response holds messages which do. As a repeated occurrence of an embedded message merges with the first, both are
// extended by appending.
func signReply(node string, streamed bool, reply []byte) ([]byte, error) {
	origin, err := proto.Marshal(&common.Empty{Metadata: &common.Metadata{Hostname: node}})
	if err != nil {
		return nil, err
	}
	if streamed {
		return append(reply, origin...), nil
	}
	number, kind, header := protowire.ConsumeTag(reply)
	if header < 0 || number != messagesField || kind != protowire.BytesType {
		return nil, fmt.Errorf("reading the answer of node %q: it has no messages", node)
	}
	message, length := protowire.ConsumeBytes(reply[header:])
	if length < 0 {
		return nil, fmt.Errorf("reading the answer of node %q: %w", node, protowire.ParseError(length))
	}
	signed := protowire.AppendTag(nil, messagesField, protowire.BytesType)
	signed = protowire.AppendVarint(signed, uint64(len(message)+len(origin)))
	signed = append(append(signed, message...), origin...)
	return append(signed, reply[header+length:]...), nil
}

// errorReply encodes a node's error as an answer, so that the answers of the other nodes still arrive.
func errorReply(node string, streamed bool, failure error) ([]byte, error) {
	message := &common.Empty{Metadata: &common.Metadata{
		Hostname: node,
		Error:    failure.Error(),
		Status:   status.Convert(failure).Proto(),
	}}
	if streamed {
		return proto.Marshal(message)
	}
	return proto.Marshal(&common.EmptyResponse{Messages: []*common.Empty{message}})
}

"""
Remember where the charger is, and ask what is near there.

Every call is a service of omird; its events tell what happened to the memory.
"""

from geometry_msgs.msg import Point
from omir_msgs.msg import Entity, MemoryEvent, MemoryRecord
from omir_msgs.srv import Recall, Remember
import rclpy
from rclpy.node import Node


class RememberAndRecall(Node):

    def __init__(self):
        super().__init__('remember_and_recall')
        self.declare_parameter('frame', 'map')
        self.declare_parameter('x', 4.2)
        self.declare_parameter('y', -1.0)
        # Relative names: in the namespace of this node, or remapped.
        self.remembering = self.create_client(Remember, 'omird/remember')
        self.recalling = self.create_client(Recall, 'omird/recall')
        self.events = self.create_subscription(MemoryEvent, 'omird/events', self.on_event, 100)

    def on_event(self, event: MemoryEvent):
        self.get_logger().info(f'{event.kind}: {event.ref}')

    def wait_for_omird(self):
        for client in (self.remembering, self.recalling):
            while not client.wait_for_service(timeout_sec=2.0):
                self.get_logger().info(f'waiting for {client.srv_name}')

    def remember_charger(self) -> Remember.Response:
        charger = Entity()
        charger.id = 'charger'
        charger.name = 'charger'
        charger.labels = [Entity.LABEL_LOCATION]

        record = MemoryRecord()
        record.content = 'the charger stands here'
        record.experience_type = MemoryRecord.EXPERIENCE_OBSERVATION
        record.event_time = self.get_clock().now().to_msg()
        record.importance = [0.8]  # none or one: empty means that nothing is said
        record.entities = ['Entity/charger']
        record.provenance.source = self.get_fully_qualified_name()
        record.pose.header.frame_id = self.get_parameter('frame').value
        record.pose.header.stamp = record.event_time
        record.pose.pose.pose.position.x = self.get_parameter('x').value
        record.pose.pose.pose.position.y = self.get_parameter('y').value
        record.pose.pose.pose.orientation.w = 1.0

        request = Remember.Request(records=[record], entities=[charger])
        # The response comes when this survives a power cut.
        return self.wait_for(self.remembering.call_async(request))

    def recall_near(self, x: float, y: float) -> Recall.Response:
        request = Recall.Request()
        request.filter.text = 'charger'
        request.filter.near = [Point(x=x, y=y)]
        request.filter.planar = True
        request.filter.radius = [2.0]
        # 'base_link' would mean: near the robot. That needs its transform to the fixed frame.
        request.filter.frame = self.get_parameter('frame').value
        request.limit = 5
        return self.wait_for(self.recalling.call_async(request))

    def wait_for(self, future):
        rclpy.spin_until_future_complete(self, future, timeout_sec=10.0)
        if not future.done():
            raise TimeoutError('omird did not answer')
        return future.result()


def main(args=None):
    rclpy.init(args=args)
    node = RememberAndRecall()
    try:
        node.wait_for_omird()
        stored = node.remember_charger()
        if not stored.status.ok:
            status = stored.status
            node.get_logger().error(f'{status.code}: {status.message} {status.path}')
            return 1
        for one in stored.stored:
            node.get_logger().info(f'stored {one.ref}, version {one.version}')

        found = node.recall_near(
            node.get_parameter('x').value, node.get_parameter('y').value)
        if not found.status.ok:
            node.get_logger().error(f'{found.status.code}: {found.status.message}')
            return 1
        for hit in found.hits:
            for record in hit.resource.record:  # exactly one kind of resource is there
                away = f', {hit.distance[0]:.1f} m away' if len(hit.distance) else ''
                node.get_logger().info(f'{hit.score:.2f} {record.content}{away}')
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    raise SystemExit(main())

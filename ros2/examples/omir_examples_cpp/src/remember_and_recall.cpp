// Remember where the charger is, ask what is near there, and say that it was right.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "geometry_msgs/msg/point.hpp"
#include "omir_msgs/msg/entity.hpp"
#include "omir_msgs/msg/memory_record.hpp"
#include "omir_msgs/msg/recall_hit.hpp"
#include "omir_msgs/msg/status.hpp"
#include "omir_msgs/srv/feedback.hpp"
#include "omir_msgs/srv/recall.hpp"
#include "omir_msgs/srv/remember.hpp"
#include "rclcpp/rclcpp.hpp"

using geometry_msgs::msg::Point;
using omir_msgs::msg::Entity;
using omir_msgs::msg::MemoryRecord;
using omir_msgs::msg::RecallHit;
using omir_msgs::msg::Status;
using omir_msgs::srv::Feedback;
using omir_msgs::srv::Recall;
using omir_msgs::srv::Remember;
using namespace std::chrono_literals;

namespace
{

// Calls a service of omird and waits for its response.
template<typename ServiceT>
typename ServiceT::Response::SharedPtr call(
  const rclcpp::Node::SharedPtr & node, const std::string & name,
  const typename ServiceT::Request::SharedPtr & request)
{
  auto client = node->create_client<ServiceT>(name);
  while (!client->wait_for_service(2s)) {
    if (!rclcpp::ok()) {
      throw std::runtime_error("stopped while waiting for " + name);
    }
    RCLCPP_INFO(node->get_logger(), "waiting for %s", name.c_str());
  }
  auto future = client->async_send_request(request);
  if (rclcpp::spin_until_future_complete(node, future, 10s) != rclcpp::FutureReturnCode::SUCCESS) {
    client->remove_pending_request(future);
    throw std::runtime_error(name + " did not answer");
  }
  return future.get();
}

void check(const Status & status)
{
  if (!status.ok) {
    throw std::runtime_error(status.code + ": " + status.message + " " + status.path);
  }
}

}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  auto node = std::make_shared<rclcpp::Node>("remember_and_recall");
  const auto frame = node->declare_parameter<std::string>("frame", "map");
  const auto x = node->declare_parameter<double>("x", 4.2);
  const auto y = node->declare_parameter<double>("y", -1.0);
  int exit_code = 0;
  try {
    Entity charger;
    charger.id = "charger";
    charger.name = "charger";
    charger.labels = {Entity::LABEL_LOCATION};

    MemoryRecord record;
    record.content = "the charger stands here";
    record.experience_type = MemoryRecord::EXPERIENCE_OBSERVATION;
    record.event_time = node->now();
    record.importance = {0.8};  // none or one: empty means that nothing is said
    record.entities = {"Entity/charger"};
    record.provenance.source = node->get_fully_qualified_name();
    record.pose.header.frame_id = frame;
    record.pose.header.stamp = record.event_time;
    record.pose.pose.pose.position.x = x;
    record.pose.pose.pose.position.y = y;
    record.pose.pose.pose.orientation.w = 1.0;

    auto remember = std::make_shared<Remember::Request>();
    remember->entities.push_back(charger);
    remember->records.push_back(record);
    // The response comes when this survives a power cut.
    const Remember::Response::SharedPtr stored = call<Remember>(node, "omird/remember", remember);
    check(stored->status);
    for (const auto & one : stored->stored) {
      RCLCPP_INFO(node->get_logger(), "stored %s", one.ref.c_str());
    }

    Point here;
    here.x = x;
    here.y = y;
    auto recall = std::make_shared<Recall::Request>();
    recall->filter.text = "charger";
    recall->filter.near = {here};
    recall->filter.planar = true;
    recall->filter.radius = {2.0};
    // "base_link" would mean: near the robot. That needs its transform to the fixed frame.
    recall->filter.frame = frame;
    recall->limit = 5;
    const Recall::Response::SharedPtr found = call<Recall>(node, "omird/recall", recall);
    check(found->status);
    for (const RecallHit & hit : found->hits) {
      for (const auto & memory : hit.resource.record) {  // exactly one kind of resource is there
        RCLCPP_INFO(node->get_logger(), "%.2f %s", hit.score, memory.content.c_str());
      }
    }

    if (!found->hits.empty() && !found->hits[0].resource.record.empty()) {
      auto feedback = std::make_shared<Feedback::Request>();
      feedback->ref = found->hits[0].ref;
      feedback->outcome = Feedback::Request::OUTCOME_CONFIRMED;
      const Feedback::Response::SharedPtr believed =
        call<Feedback>(node, "omird/feedback", feedback);
      check(believed->status);
      for (const auto probability : believed->confidence.calibrated) {
        RCLCPP_INFO(node->get_logger(), "believed with %.2f", probability);
      }
    }
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "%s", error.what());
    exit_code = 1;
  }
  rclcpp::shutdown();
  return exit_code;
}

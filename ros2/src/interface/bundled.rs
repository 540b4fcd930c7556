//! The texts of the interfaces that come with the program: `ros2/interfaces`, as in ROS 2 Jazzy without
//! the comments, and `ros2/omir_msgs`.

use super::Kind;

macro_rules! kind {
    (msg) => {
        Kind::Msg
    };
    (srv) => {
        Kind::Srv
    };
    (action) => {
        Kind::Action
    };
}

/// For each package the folder it lies in, and the names of its files by kind.
macro_rules! files {
    ($($folder:literal $package:ident { $($kind:ident: $($name:ident)*;)* })*) => {
        &[$($($((
            stringify!($package),
            kind!($kind),
            stringify!($name),
            include_str!(concat!(
                $folder, "/", stringify!($package), "/", stringify!($kind), "/",
                stringify!($name), ".", stringify!($kind)
            )),
        ),)*)*)*]
    };
}

/// Package, kind, name and text of each file.
pub(super) const FILES: &[(&str, Kind, &str, &str)] = files! {
    "../../interfaces" action_msgs {
        msg: GoalInfo GoalStatus GoalStatusArray;
        srv: CancelGoal;
    }
    "../../interfaces" builtin_interfaces {
        msg: Duration Time;
    }
    "../../interfaces" diagnostic_msgs {
        msg: DiagnosticArray DiagnosticStatus KeyValue;
        srv: AddDiagnostics SelfTest;
    }
    "../../interfaces" geometry_msgs {
        msg: Accel AccelStamped AccelWithCovariance AccelWithCovarianceStamped Inertia
            InertiaStamped Point Point32 PointStamped Polygon PolygonInstance
            PolygonInstanceStamped PolygonStamped Pose Pose2D PoseArray PoseStamped
            PoseWithCovariance PoseWithCovarianceStamped Quaternion QuaternionStamped Transform
            TransformStamped Twist TwistStamped TwistWithCovariance TwistWithCovarianceStamped
            Vector3 Vector3Stamped VelocityStamped Wrench WrenchStamped;
    }
    "../../interfaces" nav_msgs {
        msg: Goals GridCells MapMetaData OccupancyGrid Odometry Path;
        srv: GetMap GetPlan LoadMap SetMap;
    }
    "../../interfaces" rcl_interfaces {
        msg: FloatingPointRange IntegerRange ListParametersResult Log LoggerLevel Parameter
            ParameterDescriptor ParameterEvent ParameterEventDescriptors ParameterType
            ParameterValue SetLoggerLevelsResult SetParametersResult;
        srv: DescribeParameters GetLoggerLevels GetParameterTypes GetParameters ListParameters
            SetLoggerLevels SetParameters SetParametersAtomically;
    }
    "../../interfaces" rosgraph_msgs {
        msg: Clock;
    }
    "../../interfaces" sensor_msgs {
        msg: BatteryState CameraInfo ChannelFloat32 CompressedImage FluidPressure Illuminance
            Image Imu JointState Joy JoyFeedback JoyFeedbackArray LaserEcho LaserScan
            MagneticField MultiDOFJointState MultiEchoLaserScan NavSatFix NavSatStatus PointCloud
            PointCloud2 PointField Range RegionOfInterest RelativeHumidity Temperature
            TimeReference;
        srv: SetCameraInfo;
    }
    "../../interfaces" service_msgs {
        msg: ServiceEventInfo;
    }
    "../../interfaces" std_msgs {
        msg: Bool Byte ByteMultiArray Char ColorRGBA Empty Float32 Float32MultiArray Float64
            Float64MultiArray Header Int16 Int16MultiArray Int32 Int32MultiArray Int64
            Int64MultiArray Int8 Int8MultiArray MultiArrayDimension MultiArrayLayout String UInt16
            UInt16MultiArray UInt32 UInt32MultiArray UInt64 UInt64MultiArray UInt8
            UInt8MultiArray;
    }
    "../../interfaces" std_srvs {
        srv: Empty SetBool Trigger;
    }
    "../../interfaces" tf2_msgs {
        action: LookupTransform;
        msg: TF2Error TFMessage;
        srv: FrameGraph;
    }
    "../../interfaces" type_description_interfaces {
        msg: Field FieldType IndividualTypeDescription KeyValue TypeDescription TypeSource;
        srv: GetTypeDescription;
    }
    "../../interfaces" unique_identifier_msgs {
        msg: UUID;
    }
    "../../interfaces" vision_msgs {
        msg: BoundingBox2D BoundingBox2DArray BoundingBox3D BoundingBox3DArray Classification
            Detection2D Detection2DArray Detection3D Detection3DArray LabelInfo ObjectHypothesis
            ObjectHypothesisWithPose Point2D Pose2D VisionClass VisionInfo;
    }
    "../../interfaces" visualization_msgs {
        msg: ImageMarker InteractiveMarker InteractiveMarkerControl InteractiveMarkerFeedback
            InteractiveMarkerInit InteractiveMarkerPose InteractiveMarkerUpdate Marker MarkerArray
            MenuEntry MeshFile UVCoordinate;
    }
    "../.." omir_msgs {
        action: Import;
        msg: Confidence Decay Entity Episode Filter GeoPoint KeyValue MemoryEvent MemoryRecord
            Provenance RecallHit Relationship Resource SpatialPose Status Stored;
        srv: Anchor Export Feedback Forget Rebase Recall Remember;
    }
};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folders_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = fs::read_dir(root.join("interfaces")).unwrap();
        let mut packages: Vec<_> = folders.map(|package| package.unwrap().path()).collect();
        packages.push(root.join("omir_msgs"));
        let mut found = 0;
        for package in packages {
            for (ending, kind) in [("msg", Kind::Msg), ("srv", Kind::Srv), ("action", Kind::Action)]
            {
                let Ok(files) = fs::read_dir(package.join(ending)) else { continue };
                for file in files.map(|file| file.unwrap().path()) {
                    let name = file.file_stem().unwrap();
                    let text = fs::read_to_string(&file).unwrap();
                    let listed = FILES.iter().any(|(of, as_kind, as_name, as_text)| {
                        package.ends_with(of)
                            && *as_kind == kind
                            && name == *as_name
                            && text == *as_text
                    });
                    assert!(listed, "{}", file.display());
                    found += 1;
                }
            }
        }
        assert_eq!(found, FILES.len());
    }
}
